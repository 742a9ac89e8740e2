package dns

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/pacing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Instant is a point in the uptime of this process, or unset. The zero value is unset.
type Instant struct {
	set bool
	at  time.Duration
}

// At returns the Instant at that uptime.
func At(uptime time.Duration) Instant { return Instant{set: true, at: uptime} }

// IsSet reports whether the Instant is set.
func (i Instant) IsSet() bool { return i.set }

// Memory is what only this process knows about a zone. Its zero value is the Memory after
// a start. Nothing changes a Memory or what it refers to: [Observe] and [Conclude] return
// new ones.
type Memory struct {
	// options identify the options with which the marks in records were verified, and
	// token the version of the API token.
	options, token string
	zone           zoneMemory
	records        recordsMemory
	usage          usageMemory
	hosts          hostsMemory
	failure        pacing.Failure
	// blocked is documented at [Report.BlockedUntil].
	blocked time.Duration
	// refused are the changes that Cloudflare refuses, by name.
	refused map[string]refusal
	// limit is how many operations the next batch can have; 0 means provider.MaxBatch.
	limit int
	// recreate reports whether Cloudflare has refused to change the type of a record.
	recreate bool
	traces   map[string]trace
	// turns are namespaces in the order of their last creation or deletion. Missing
	// namespaces are the next.
	turns []string
}

// zoneMemory is the zone as last read.
type zoneMemory struct {
	read Instant
	// next is the uptime of the next read.
	next time.Duration
	// id is the ID in the settings with which it was read.
	id    provider.ZoneID
	found []provider.Zone
}

// recordsMemory is the zone's records as last read and changed.
type recordsMemory struct {
	view *view
	// read is when the last complete read was sent.
	read Instant
	// extra is when the last read was sent that an edit or a waiting change needed.
	extra Instant
	// answered is when the last read of any kind ended.
	answered Instant
	// edits are the names before whose edit the last read was sent, sorted. It is empty
	// once a batch was applied.
	edits []string
	// outdated reports whether an error shows that the records have changed.
	outdated bool
	// unanswered is until when Cloudflare may apply a batch whose answer was lost.
	unanswered Instant
}

// usageMemory is the zone's quota.
type usageMemory struct {
	read Instant
	// next is the uptime of the next read, which creations can advance.
	next  time.Duration
	quota int // 0 if it is unknown
	// full is when Cloudflare has refused a record because of the quota.
	full Instant
}

// hostsMemory is the hosts of the zone's certificates.
type hostsMemory struct {
	// next is the uptime of the next read.
	next  time.Duration
	known bool
	hosts map[string]bool
}

// refusal is why a change is not tried again until then. If the records have changed, it
// counts only when it is repeated: the next read shows why.
type refusal struct {
	until   time.Duration
	message string
	counts  bool
}

// trace is what this process knows about the Gateway that a record led to. Only records
// with a valid mark, and names that a Gateway's wildcard answers for, have one.
type trace struct {
	// target is where the record leads. Another target begins another trace.
	target string
	// namespace is the namespace of the listener that claimed the hostname last, or "" if
	// it is unknown.
	namespace string
	// unheld is since when the Gateway to which the record leads neither publishes nor
	// keeps the hostname, and unwanted since when no Gateway does. They are unset while
	// that is not the case, or is not known.
	unheld, unwanted Instant
}
