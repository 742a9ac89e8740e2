package access

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
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

// Memory is what only this process knows about an account. Its zero value is the Memory
// after a start. Nothing changes a Memory or what it refers to: [Observe] and [Conclude]
// return new ones.
type Memory struct {
	// token is the version of the API token.
	token string
	// started is when this Memory was first used: a process before can have sent its last
	// write until then.
	started      Instant
	applications applicationsMemory
	policies     policiesMemory
	failure      pacing.Failure
	// blocked is documented at [Report.BlockedUntil].
	blocked time.Duration
	// tags are the tags that exist, because an application has them or a request made
	// them.
	tags map[string]bool
	// refused are the writes that have failed, by hostname.
	refused map[string]refusal
	// unanswered has until when Cloudflare may apply a write whose answer was lost, by
	// hostname.
	unanswered map[string]time.Duration
	// full is when Cloudflare has refused an application because of the account's quota.
	full Instant
	// traces are by the key of the application.
	traces map[string]trace
	// changes has when the applications of a namespace were changed, the oldest first.
	changes map[string][]time.Duration
	// turns are namespaces in the order of their last write. Missing namespaces are the
	// next.
	turns []limits.Tenant
	// reasons are the reasons of the last report.
	reasons map[hostnameKey]reasonSince
	// adopted are the applications before their adoption, by ID.
	adopted map[provider.ApplicationID]provider.Application
}

// applicationsMemory is the account's applications as last read and written.
type applicationsMemory struct {
	// all is nil until a list was read. It is never changed.
	all map[provider.ApplicationID]*provider.Application
	// read is when the last list was sent.
	read Instant
	// outdated reports whether an error shows that the applications have changed.
	outdated bool
	// again is when the list is read again after the first one of the process: until then,
	// Cloudflare may apply a write of the process before.
	again Instant
	// written reports whether an application was written since the last list.
	written bool
}

// policiesMemory is the account's reusable policies as last read.
type policiesMemory struct {
	read Instant
	// decisions are by ID.
	decisions map[provider.AccessPolicyID]string
	// outdated reports whether an error shows that a policy is missing.
	outdated bool
}

// refusal is why a write is not tried again until then.
type refusal struct {
	until   time.Duration
	reason  conditions.Reason
	message string
	// count is the number of consecutive failures, up to a limit.
	count int
	// final reports whether Cloudflare refuses the write because of the hostname.
	final bool
}

// trace is what this process knows about an application, or about the last one for a
// hostname.
type trace struct {
	id provider.ApplicationID
	// namespace is the namespace for which the application counted last; "" if it counted
	// for none, or if that is not known.
	namespace string
	// unheld is since when the Gateway in the tag no longer demands the application, and
	// unwanted since when no Gateway does. They are unset while that is not the case, or
	// is not known.
	unheld, unwanted Instant
	// departed reports whether unheld began when the Gateway was gone.
	departed bool
	// content identifies the fields of the application when it was last as wanted.
	content string
	// repairs are when external changes were repaired within the last hour, and calm is
	// since when a contested application is as wanted.
	repairs []time.Duration
	calm    Instant
	// updated is when the application was last updated or deleted in order to be made
	// again. It outlives the application.
	updated Instant
	// revoked reports whether the tokens were revoked since the tag that demands it was
	// written.
	revoked bool
}

// hostnameKey is a hostname of a Gateway.
type hostnameKey struct{ gateway, hostname string }

// reasonSince is since when a hostname has a reason.
type reasonSince struct {
	reason conditions.Reason
	since  time.Duration
}
