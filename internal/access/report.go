package access

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Verdict is what the account contains for one hostname of a Gateway.
type Verdict struct {
	// Reason is [conditions.ReasonProtected] if the application is as the demand wants it,
	// and its tokens were issued under this demand. For a hostname without a demand, it is
	// the reason why the hostname is behind the login of a wider demand. It is empty for an
	// application that the Gateway in its tag no longer demands.
	Reason conditions.Reason
	// Message explains another reason, and what to do, as sentences that follow the
	// hostname and a colon.
	Message string
	// Application is the application that protects the hostname, as this process last read
	// or wrote it, also if it is not as the demand wants it; nil if there is none.
	Application *Application
	// Since is the uptime since when the verdict has this reason.
	Since time.Duration
}

// Application is an application of the installation, as far as [States] needs it.
type Application struct {
	// Hostname is what the application covers.
	Hostname         string
	TeamName, AUDTag string
	// Level and Owner are those of the demand for which it was made, as the tag says: a
	// digest.
	Decider string
	// Policies are the names of its policies in the catalogue, sorted. A policy that is not
	// in the catalogue has its ID in brackets.
	Policies        []v1alpha1.PolicyName
	SessionDuration time.Duration
	// Last is the application as this process last read or wrote it.
	Last provider.Application
	// Revoking reports whether tokens that were issued before a stricter change are still
	// to be revoked.
	Revoking bool
}

// Verdicts are the verdicts about the hostnames of one Gateway. A demanded hostname about
// which nothing was decided yet is missing.
type Verdicts map[string]Verdict

// Report is what an account's applications mean.
type Report struct {
	// Gateways has the verdicts for each Gateway. It is nil until the applications have
	// been read by this process, or could not be read because of the API token or the key.
	Gateways map[types.NamespacedName]Verdicts
	// Read reports whether this process has read the applications, and can tell which are
	// the installation's.
	Read bool
	// Tagged are the applications that issue tokens and have the tag of an installation, by
	// AUD tag: after its key was lost, an installation cannot tell its own ones from others.
	Tagged map[string]*Application
	// Released are the Gateways in the state Retiring with no application left to hand
	// over or delete.
	Released map[types.NamespacedName]bool
	// Orphans are the installation's applications that nothing demands and whose
	// Gateway has no Tunnel, sorted by hostname.
	Orphans []Orphan
	// Allows are the policies that were last read with the decision "allow" or
	// "non_identity". It is nil until the policies have been read.
	Allows map[provider.AccessPolicyID]bool
	// Counts are the hostnames by reason.
	Counts map[conditions.Reason]int
	// Forbidden is why the API token cannot be used, or "".
	Forbidden string
	// Managed counts the installation's applications, and Total those of the account.
	Managed, Total int
	// ReadAt is the uptime of the last list; 0 before the first.
	ReadAt time.Duration
	// BlockedUntil is the uptime until which an outage or another API token may have prevented
	// changes; 0 if neither has.
	BlockedUntil time.Duration
	// Waiting counts the writes that a limit delays.
	Waiting int
}

// Orphan is an application that nothing demands.
type Orphan struct {
	Hostname string
	ID       string
}
