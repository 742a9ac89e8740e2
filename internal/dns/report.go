package dns

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Verdict is what a zone's records mean for a hostname.
type Verdict string

// The first verdict that applies counts, in this order.
const (
	// VerdictUnread means that the zone could not be read.
	VerdictUnread               Verdict = "Unread"
	VerdictNoZone               Verdict = "NoZone"
	VerdictManaged              Verdict = "Managed"
	VerdictStale                Verdict = "Stale"
	VerdictExternal             Verdict = "External"
	VerdictNotProxied           Verdict = "NotProxied"
	VerdictRecordConflict       Verdict = "RecordConflict"
	VerdictHeldByAnotherGateway Verdict = "HeldByAnotherGateway"
	VerdictMissing              Verdict = "Missing"
	// The following verdicts are about records whose names no Gateway wants.
	VerdictOrphan   Verdict = "Orphan"
	VerdictUnwanted Verdict = "Unwanted"
)

// Certificate tells whether an edge certificate covers a hostname.
type Certificate int

const (
	// CertificateUnknown means that the certificates cannot be read, and the hostname is
	// deeper than one level below the zone.
	CertificateUnknown Certificate = iota
	// CertificateCovers means that an edge certificate covers the hostname.
	CertificateCovers
	// CertificateMissing means that no edge certificate covers the hostname.
	CertificateMissing
)

// Finding is what DNS reports about one hostname of one Gateway.
type Finding struct {
	Verdict Verdict
	// Reason is the hostname's reason for DNSReady: ReasonPublished if the hostname is
	// published.
	Reason conditions.Reason
	// Message explains another reason, and what to do, as sentences that follow the
	// hostname and a colon. It never contains a record's content.
	Message string
	// Certificate tells whether an edge certificate covers the hostname.
	Certificate Certificate
	// CertificateMessage explains that none does, like Message.
	CertificateMessage string
}

// Findings are what DNS reports for one Gateway, by hostname. A hostname that was not
// decided about yet is missing.
type Findings map[string]Finding

// Report is what a zone's records mean.
type Report struct {
	// Gateways has the findings for each Gateway's hostnames in the zone. It is nil until
	// the zone has been read.
	Gateways map[types.NamespacedName]Findings
	// Unused counts the records without a Gateway that wants them, by verdict.
	Unused map[Verdict]int
	// Released are the Gateways in the state Retiring with no record left to move or
	// delete. A Gateway whose records another namespace's Gateway wants is among them.
	Released map[types.NamespacedName]bool
	// Orphans are the names of orphaned records, sorted.
	Orphans []string
	// Forbidden is why the API token cannot be used, or "".
	Forbidden string
	// Records and Quota are how many records the zone has and can have. Quota is 0 if it
	// is unknown.
	Records, Quota int
	// ReadAt is the uptime of the last complete read of the records; 0 before the first.
	ReadAt time.Duration
	// BlockedUntil is the uptime until which an outage or another API token may have prevented
	// changes; 0 if neither has.
	BlockedUntil time.Duration
}
