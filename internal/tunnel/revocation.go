package tunnel

import (
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// revocationLimit limits the writes by [Revocations] for each Gateway.
var revocationLimit = UpdateLimit{Burst: 10, Interval: 5 * time.Second}

// Revocations limits the writes that only revoke rules, which do not need a token from
// Memory.Updates. They have their own bucket, so that changes by one tenant do not
// delay revoking what another tenant may use. One namespace spends at most half of it.
type Revocations struct {
	Bucket Bucket
	// Shares contains the namespaces that have spent a part of their share, in order.
	Shares []Share
	// Written is the hash of the last configuration that was written in this way.
	Written string
}

// Share is how much a namespace has spent on revocations.
type Share struct {
	Namespace string
	Bucket    Bucket
}

// share returns the limit for one namespace.
func (l UpdateLimit) share() UpdateLimit {
	return UpdateLimit{Burst: max(1, l.Burst/2), Interval: 2 * l.Interval}
}

// wait returns the time until the namespaces may revoke. It is enough that one of them
// has a share left, so that a namespace whose objects keep changing does not delay the
// others. No namespace means that the change cannot be attributed.
func (r Revocations) wait(uptime time.Duration, l UpdateLimit, namespaces []string) time.Duration {
	wait := r.Bucket.wait(uptime, l)
	if len(namespaces) == 0 {
		return wait
	}
	shortest := l.share().Interval
	for _, namespace := range namespaces {
		shortest = min(shortest, r.bucketOf(namespace).wait(uptime, l.share()))
	}
	return max(wait, shortest)
}

func (r Revocations) bucketOf(namespace string) Bucket {
	for _, share := range r.Shares {
		if share.Namespace == namespace {
			return share.Bucket
		}
	}
	return Bucket{}
}

// spend returns the Revocations after a write. Each namespace that has a share left
// spends a part of it.
func (r Revocations) spend(uptime time.Duration, l UpdateLimit, namespaces []string) Revocations {
	next := Revocations{Bucket: r.Bucket.spend(uptime, l), Written: r.Written}
	for _, share := range r.Shares {
		if share.Bucket = share.Bucket.refilled(uptime, l.share()); share.Bucket.Spent > 0 && !slices.Contains(namespaces, share.Namespace) {
			next.Shares = append(next.Shares, share)
		}
	}
	for _, namespace := range namespaces {
		b := r.bucketOf(namespace)
		if b.wait(uptime, l.share()) == 0 {
			b = b.spend(uptime, l.share())
		}
		next.Shares = append(next.Shares, Share{namespace, b})
	}
	slices.SortFunc(next.Shares, func(a, b Share) int { return strings.Compare(a.Namespace, b.Namespace) })
	return next
}

// DependsOnChanges reports whether the next decision depends on
// Facts.ChangedNamespaces: the desired configuration cannot be written now.
func DependsOnChanges(f Facts) bool {
	remote := f.Memory.Remote.Configuration
	return f.Object != nil && f.Desired != nil && f.Desired.Configuration != nil && remote.Known && remote.Hash != f.Desired.Hash && f.isHeldBack()
}

// isHeldBack reports whether the desired configuration waits for a token, or was
// rejected and waits for another attempt.
func (f Facts) isHeldBack() bool {
	b := f.Memory.Backoffs[TrackConfiguration]
	rejected := b.Hash == f.Desired.Hash && b.wait(f.Uptime, provider.PriorityChange) > 0
	return f.Object.Status.Configuration.Hash != "" && (rejected || f.Memory.Updates.wait(f.Uptime, f.Desired.Updates) > 0)
}

// revocation returns the step that writes the last configuration without the rules that
// the desired one revokes, and the time until it may be written. The time is negative
// if the desired configuration revokes nothing that is in effect, or if it can be
// written at once. next is the step that writes the desired configuration.
func (f Facts) revocation(next Step, previous string) (Step, time.Duration) {
	remote := f.Memory.Remote.Configuration
	if !f.Desired.Revocations.isSet() || next.ExternalChange != 0 || f.credentialsProblem() != nil || !f.isHeldBack() {
		return Step{}, -1
	}
	restricted, revokes := ingress.Restrict(remote.Configuration, *f.Desired.Configuration)
	if !revokes {
		return Step{}, -1
	}
	next.Configuration, next.Hash = &restricted, restricted.Hash()
	next.Record = f.configurationRecord(next.Hash, previous)
	next.Limit, next.Revokes, next.Namespaces = f.Desired.Revocations, true, f.ChangedNamespaces
	wait := max(f.Memory.Push.wait(f.Uptime), f.Memory.Revocations.wait(f.Uptime, next.Limit, next.Namespaces))
	if b := f.Memory.Backoffs[TrackConfiguration]; b.Hash == "" || b.Hash == next.Hash {
		wait = max(wait, b.wait(f.Uptime, provider.PriorityChange))
	}
	return next, wait
}
