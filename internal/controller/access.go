package controller

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// accessBook contains what the decisions about Gateways demand of Cloudflare Access. The
// reconciles of Gateways write it, and those of accounts read it. A restart loses it, and
// accounts wait until it is complete again.
type accessBook struct {
	undecided *undecided
	accounts  *accessAccounts
	// enqueue adds an account to the queue, and requeue a Gateway. Both can block, so they
	// are called without the mutex.
	enqueue func(accountKey)
	requeue func(state.Key)

	mu      sync.Mutex
	entries map[types.NamespacedName]*accessEntry
}

// accessEntry is what the book contains about one Gateway.
type accessEntry struct {
	gateway access.Gateway
	// account is the account of the Gateway's Tunnel, or of its settings.
	account accountKey
	shown   shownVerdicts
	// released reports whether the retiring Tunnel has no application left.
	released bool
	// outcomes are the results of adoptions that the Tunnel's status does not have yet.
	outcomes []access.AdoptionOutcome
}

// initialize lists the Gateways and the accounts at the first call.
func (b *accessBook) initialize(ctx context.Context) error {
	if b.undecided.isListed() {
		return nil
	}
	listed, err := b.accounts.refresh(ctx)
	if err != nil {
		return err
	}
	b.enqueueAll(listed)
	return b.undecided.initialize(ctx)
}

// update records a decision, and enqueues the accounts that it affects.
func (b *accessBook) update(g access.Gateway, account accountKey) {
	name := g.NamespacedName
	b.mu.Lock()
	entry := b.entries[name]
	if entry == nil {
		entry = &accessEntry{}
		b.entries[name] = entry
	}
	changed := !reflect.DeepEqual(entry.gateway, g) || entry.account != account
	if g.State != ownership.Retiring {
		entry.released = false
	}
	moved := entry.account
	entry.gateway, entry.account = g, account
	b.mu.Unlock()
	switch {
	case b.undecided.decide(name):
		b.enqueueAll(b.accounts.managed(""))
	case changed:
		b.enqueueManaged(moved, account)
	}
}

// suspend records that nothing changes for the hostnames of a Gateway: it is unknown
// whether it exists, or what becomes of its Tunnel, whose account can be empty.
func (b *accessBook) suspend(name types.NamespacedName, account accountKey, hasTunnel bool) {
	b.mu.Lock()
	entry := b.entries[name]
	if entry == nil && !hasTunnel {
		b.mu.Unlock()
		if b.undecided.decide(name) {
			b.enqueueAll(b.accounts.managed(""))
		}
		return
	}
	g := access.Gateway{NamespacedName: name, HasTunnel: hasTunnel}
	if entry != nil {
		g = entry.gateway
		g.HasTunnel = g.HasTunnel || hasTunnel
		account.id = cmp.Or(account.id, entry.account.id)
	}
	b.mu.Unlock()
	// The rules can change while nothing is read.
	g.State, g.InEffect, g.InEffectKnown = ownership.Unknown, nil, false
	b.update(g, account)
}

// forget forgets a Gateway without a Tunnel.
func (b *accessBook) forget(name types.NamespacedName) {
	b.mu.Lock()
	entry := b.entries[name]
	delete(b.entries, name)
	b.mu.Unlock()
	switch {
	case b.undecided.decide(name):
		b.enqueueAll(b.accounts.managed(""))
	case entry != nil:
		b.enqueueManaged(entry.account)
	}
}

func (b *accessBook) enqueueAll(keys []accountKey) {
	for _, key := range keys {
		b.enqueue(key)
	}
}

// enqueueManaged enqueues those of the accounts whose applications are managed, each once.
func (b *accessBook) enqueueManaged(keys ...accountKey) {
	slices.SortFunc(keys, func(a, b accountKey) int { return cmp.Compare(a.id, b.id) })
	for _, key := range slices.Compact(keys) {
		if key.id != "" {
			b.enqueueAll(b.accounts.managed(key.id))
		}
	}
}

// gateways returns the Gateways that matter to the account, and whether the book is
// complete: those of the classes, and those with a Tunnel in the account.
func (b *accessBook) gateways(key accountKey, classes []access.Class) (list []access.Gateway, complete bool) {
	complete = b.undecided.isComplete() // before the list, which is then complete
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entry := range b.entries {
		g := entry.gateway
		lists := g.Class != "" && slices.ContainsFunc(classes, func(c access.Class) bool { return c.Name == g.Class })
		if !lists && entry.account != key {
			continue
		}
		if entry.account != key {
			g.State = ownership.Frozen // its Tunnel is in another account than its class asks for
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b access.Gateway) int { return strings.Compare(a.String(), b.String()) })
	return list, complete
}

// unreleased reports whether applications of the retiring Gateway may remain, if those in
// the account are managed. blockedUntil is [access.Report.BlockedUntil].
func (b *accessBook) unreleased(name types.NamespacedName, account accountKey) (unreleased bool, blockedUntil time.Duration) {
	if len(b.accounts.managed(account.id)) == 0 {
		return false, 0
	}
	blockedUntil = b.accounts.lastReport(account).BlockedUntil
	b.mu.Lock()
	defer b.mu.Unlock()
	entry := b.entries[name]
	return entry == nil || !entry.released, blockedUntil
}

// reported records an account's report. It requeues the Gateways whose verdicts or state it
// changes.
func (b *accessBook) reported(key accountKey, before, after access.Report) {
	var changed []types.NamespacedName
	known := before.Read != after.Read || !maps.Equal(before.Allows, after.Allows)
	b.mu.Lock()
	for name, entry := range b.entries {
		if entry.account != key {
			continue
		}
		differs := known || !reflect.DeepEqual(before.Gateways[name], after.Gateways[name]) || entry.concerns(before.Tagged, after.Tagged)
		if released := entry.gateway.State == ownership.Retiring && after.Released[name]; released != entry.released {
			entry.released, differs = released, true
		}
		if differs {
			changed = append(changed, name)
		}
	}
	b.mu.Unlock()
	b.requeueAll(changed)
}

// concerns reports whether the Gateway's rules demand the tokens of an application that is
// only in one of the maps.
func (e *accessEntry) concerns(before, after map[string]*access.Application) bool {
	return slices.ContainsFunc(e.gateway.InEffect, func(tag string) bool { return !reflect.DeepEqual(before[tag], after[tag]) })
}

// requeueAll requeues Gateways.
func (b *accessBook) requeueAll(names []types.NamespacedName) {
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	for _, name := range slices.Compact(names) {
		b.requeue(state.GatewayKey(name.Namespace, name.Name))
	}
}
