// Package access decides which Cloudflare Access applications the controller creates,
// changes and deletes, and which hostnames are open, protected or closed.
//
// The unit is the account. The controller gathers the [Facts], calls [Observe] and [Decide],
// executes the [Step], and passes its [Result] to [Conclude], until the step is to wait.
// [NewReport] then returns the verdict about each demanded hostname. The next decision about
// a Gateway contains it in [Known], from which [States] decides what the hostname requires.
//
// docs/guides/access.md describes the rules. The golden tables contain a row for each rule,
// and an exhaustive exploration checks that the rules work together. A decision has these
// stages:
//
//	situation.go  the classes, and the state of each Gateway in the account
//	claims.go     who needs which application, and which demand precedes
//	bypass.go     which hostnames below a wildcard need an exception from its login
//	remote.go     the applications: the installation's, by their tags (tags.go), and what
//	              those of others cover (coverage.go)
//	limits.go     which demands exceed a limit
//	decision.go   what becomes of each application
//	trace.go      since when applications are not demanded, and who else has changed them
//	write.go      the write that a decision needs (change.go and stricter.go compare)
//	agenda.go     the writes that can be made now, in turns (fairness.go)
//	decide.go     the next requests
//	findings.go   the verdicts
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O.
package access

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// Facts contains everything that a decision about one account depends on.
type Facts struct {
	// Uptime is the time since this process started, on its monotonic clock. All delays
	// use it.
	Uptime time.Duration
	// Clock is the wall clock time. Only the age of adoption requests depends on it.
	Clock time.Time
	// Identity signs the tags of applications. Without a key, nothing changes.
	Identity ownership.Identity
	// Classes are the GatewayClasses of the account, in any order, whether or not they
	// manage applications.
	Classes []Class
	// Gateways are the Gateways of the Classes, and all Gateways that have a Tunnel in the
	// account, in any order. It includes Gateways that are gone but have a Tunnel.
	Gateways []Gateway
	// GatewaysKnown reports whether Gateways is complete: every Gateway and every Tunnel
	// that existed when the process started has been decided about once.
	GatewaysKnown bool
	// Adoptions are the requests to adopt applications.
	Adoptions []Adoption
	// TokenVersion changes with the API token; it is empty while there is no token, and
	// TokenMessage says why.
	TokenVersion, TokenMessage string
	// Memory is what only this process knows.
	Memory Memory
}

// Class is a GatewayClass of the account.
type Class struct {
	Name string
	// Created is when the GatewayClass was created. If the settings of two classes do not
	// agree, those of the older one count.
	Created  time.Time
	Settings settings.Applications
}

// Gateway is what the decision about a Gateway says about its hostnames.
type Gateway struct {
	types.NamespacedName
	// Created is when the Gateway was created. The older one of two Gateways precedes.
	Created time.Time
	// Class is the name of its GatewayClass; empty if the Gateway is gone.
	Class string
	State ownership.State
	// HasTunnel reports whether the Gateway has a Tunnel object.
	HasTunnel bool
	// DemandsUnknown reports whether not all demands could be read, for example because
	// the CustomResourceDefinition of AccessPolicies is not served. Nothing ends then.
	DemandsUnknown bool
	// Demands has one entry for each application that the Gateway needs, sorted by
	// hostname.
	Demands []Demand
	// Hostnames are all hostnames of the Gateway's table, sorted by name.
	Hostnames []Hostname
	// InEffect are the AUD tags that the rules in effect demand, sorted. It is valid only
	// if InEffectKnown. While it is not, every application of the Gateway stays.
	InEffect      []string
	InEffectKnown bool
}

// Level is who demands protection. A level precedes the levels after it.
type Level int

// The levels.
const (
	LevelClass   Level = iota // an entry of the GatewayClass
	LevelGateway              // an entry of the Gateway
	LevelPolicy               // an AccessPolicy
)

// Demand is the demand that decides about a hostname.
type Demand struct {
	// Hostname is the application's hostname: exact, or a wildcard such as
	// "*.example.com". It is a hostname of the Gateway's table.
	Hostname string
	// Invalid is why the demand closes its hostname with any content of the account, or nil.
	// No application is created or changed for it, and an existing one stays.
	Invalid *settings.Problem
	Level   Level
	// Object is the object that demands: a TunnelConfiguration or an AccessPolicy. It is
	// for messages only.
	Object string
	// Owner identifies who decides: the GatewayClass, the Gateway, or the namespace of the
	// AccessPolicy; and the namespace of the listener that claims the hostname. When it
	// changes, the application is made again, because the backends of the former owner
	// have seen its tokens.
	Owner string
	// Namespace is the namespace for which the application counts; empty for a demand of
	// the GatewayClass.
	Namespace string
	// Created is when the demanding object was created. The youngest demands exceed a
	// limit.
	Created         time.Time
	Policies        []v1alpha1.PolicyName
	SessionDuration time.Duration
	CORS            *v1alpha1.AccessCORS
	// Permitted reports whether an application may be made for the hostname. Otherwise it
	// is closed: HostnameNotPermitted.
	Permitted bool
	// NamedByClass reports whether an entry of the GatewayClass names exactly this
	// hostname. Only then may it have an application below one without our tag.
	NamedByClass bool
}

// Hostname is a hostname of a Gateway's table, with or without a demand. A hostname
// without a demand below another demand's wildcard needs an application that lets every
// request pass.
type Hostname struct {
	Name string
	// Namespace is the namespace of the listener that claims the hostname.
	Namespace string
	// Created is when the owner of the listener was created.
	Created time.Time
	// Permitted reports whether the annotation of the namespace permits the hostname.
	Permitted bool
	// Exempt reports whether an entry with required: false decides about the hostname.
	Exempt bool
	// ByHand reports whether an entry with audTags protects the hostname. It counts as
	// demanded.
	ByHand bool
	// NamedByClass reports whether an entry of the GatewayClass names exactly this
	// hostname. Only then may it have an application below one without our tag.
	NamedByClass bool
}

// Adoption is a request to adopt an application.
type Adoption struct {
	v1alpha1.ApplicationAdoption
	// Gateway is the Gateway of the Tunnel that has the request.
	Gateway types.NamespacedName
}

// AdoptionOutcome is how a request ended.
type AdoptionOutcome struct {
	Adoption
	Result  v1alpha1.AdoptionResult
	Message string
}
