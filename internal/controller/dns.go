package controller

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// dnsBook contains what the decisions about Gateways say about their hostnames in DNS.
// The reconciles of Gateways write it, and those of zones read it. A restart loses it, and
// zones wait until it is complete again.
type dnsBook struct {
	undecided *undecided
	zones     *zones
	// enqueue adds a zone to the queue, and requeue a Gateway. Both can block, so they are
	// called without the mutex.
	enqueue func(zoneKey)
	requeue func(state.Key)

	mu      sync.Mutex
	entries map[types.NamespacedName]*dnsEntry
}

// dnsEntry is what the book contains about one Gateway.
type dnsEntry struct {
	gateway dns.Gateway
	// account is the account of the Gateway's Tunnel, or of its settings.
	account string
	// settings are those of its GatewayClass.
	settings settings.DNS
	// connected is the tunnel to which a connector has been connected.
	connected provider.TunnelID
	// external reports whether the controller does not run the connectors.
	external bool
	check    connectionCheck

	// released contains the zones without a record that leads to the retiring Tunnel.
	released map[zoneKey]bool
	// outcomes are the results of adoptions that the Tunnel's status does not have yet.
	outcomes []dns.AdoptionOutcome
}

// dnsUpdate is what a reconcile of a Gateway says.
type dnsUpdate struct {
	gateway  dns.Gateway
	account  string
	settings settings.DNS
	// inEffect reports whether the decided configuration is in effect.
	inEffect bool
	// external reports whether the controller does not run the connectors.
	external bool
}

// initialize lists the Gateways and the zones at the first call.
func (b *dnsBook) initialize(ctx context.Context) error {
	if b.undecided.isListed() {
		return nil
	}
	listed, err := b.zones.refresh(ctx)
	if err != nil {
		return err
	}
	b.enqueueAll(listed)
	return b.undecided.initialize(ctx)
}

// update records a decision, and enqueues the zones that it affects.
func (b *dnsBook) update(u dnsUpdate) {
	name := u.gateway.NamespacedName
	b.mu.Lock()
	entry := b.entries[name]
	if entry == nil {
		entry = &dnsEntry{}
		b.entries[name] = entry
	}
	before, moved := entry.gateway, entry.account
	g := u.gateway
	if g.Tunnel != "" && g.Tunnel == entry.connected {
		g.Connected = true
	}
	if g.Connected {
		entry.connected = g.Tunnel
	}
	if !u.inEffect {
		g.Hostnames = keepServed(g.Hostnames, before.Hostnames)
	}
	if g.State != ownership.Retiring {
		entry.released = nil
	}
	entry.gateway, entry.account, entry.settings, entry.external = g, u.account, u.settings, u.external
	b.mu.Unlock()
	complete := b.undecided.decide(name)
	switch {
	case complete:
		b.enqueueAll(b.zones.listed(""))
	case moved != u.account && moved != "":
		b.enqueueAll(b.zones.listed(moved))
		b.enqueueAll(b.zones.listed(u.account))
	default:
		b.enqueueAll(affectedZones(b.zones.listed(u.account), before, g))
	}
}

// suspend records that nothing changes for the hostnames of a Gateway: it is unknown
// whether it exists, or what becomes of its Tunnel, whose ID and account can be empty.
func (b *dnsBook) suspend(name types.NamespacedName, id provider.TunnelID, account string) {
	b.mu.Lock()
	known := b.entries[name]
	if known == nil && id == "" {
		b.mu.Unlock()
		if b.undecided.decide(name) {
			b.enqueueAll(b.zones.listed(""))
		}
		return
	}
	u := dnsUpdate{gateway: dns.Gateway{NamespacedName: name, Tunnel: id}, account: account}
	if known != nil {
		u = dnsUpdate{gateway: known.gateway, account: cmp.Or(account, known.account), settings: known.settings, external: known.external}
		u.gateway.Tunnel = cmp.Or(id, known.gateway.Tunnel)
	}
	b.mu.Unlock()
	u.gateway.State = ownership.Unknown
	b.update(u)
}

// forget forgets a Gateway without a Tunnel.
func (b *dnsBook) forget(name types.NamespacedName) {
	b.mu.Lock()
	entry := b.entries[name]
	delete(b.entries, name)
	b.mu.Unlock()
	complete := b.undecided.decide(name)
	switch {
	case complete:
		b.enqueueAll(b.zones.listed(""))
	case entry != nil:
		b.enqueueAll(b.zones.listed(entry.account))
	}
}

func (b *dnsBook) enqueueAll(keys []zoneKey) {
	for _, key := range keys {
		b.enqueue(key)
	}
}

// gateways returns the Gateways that matter to the zone, and whether the book is
// complete: those of the classes, and those with a Tunnel in the account.
func (b *dnsBook) gateways(key zoneKey, classes []dns.Class) (list []dns.Gateway, complete bool) {
	complete = b.undecided.isComplete() // before the list, which is then complete
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entry := range b.entries {
		g := entry.gateway
		lists := g.Class != "" && slices.ContainsFunc(classes, func(c dns.Class) bool { return c.Name == g.Class })
		if !lists && entry.account != key.account {
			continue
		}
		if entry.account != key.account {
			g.State = ownership.Frozen // its Tunnel is in another account than its class asks for
		}
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b dns.Gateway) int { return strings.Compare(a.String(), b.String()) })
	return list, complete
}

// findings returns what the zones contain for the Gateway, and whether all of them were
// read.
func (b *dnsBook) findings(name types.NamespacedName) (dns.Findings, bool) {
	b.mu.Lock()
	entry := b.entries[name]
	if entry == nil {
		b.mu.Unlock()
		return nil, false
	}
	g, account, set := entry.gateway, entry.account, entry.settings
	b.mu.Unlock()
	return dns.Assemble(g, set, b.zones.reports(account))
}

// unreleased reports whether a zone that is managed may have a record that leads to the
// Gateway's Tunnel, which retires or can retire. blockedUntil is the latest
// [dns.Report.BlockedUntil] of these zones.
func (b *dnsBook) unreleased(name types.NamespacedName, account string) (unreleased bool, blockedUntil time.Duration) {
	zones := b.zones.managed(account)
	b.mu.Lock()
	if entry := b.entries[name]; entry != nil {
		zones = slices.DeleteFunc(zones, func(key zoneKey) bool { return entry.released[key] })
	}
	b.mu.Unlock()
	for _, key := range zones {
		blockedUntil = max(blockedUntil, b.zones.lastReport(key).BlockedUntil)
	}
	return len(zones) > 0, blockedUntil
}

// reported records a zone's report. It requeues the Gateways whose findings or state it
// changes.
func (b *dnsBook) reported(key zoneKey, before, after dns.Report) {
	var changed []types.NamespacedName
	b.mu.Lock()
	for name, entry := range b.entries {
		differs := (before.Gateways == nil) != (after.Gateways == nil) && entry.account == key.account ||
			!maps.Equal(before.Gateways[name], after.Gateways[name])
		if released := entry.gateway.State == ownership.Retiring && after.Released[name]; released != entry.released[key] {
			if entry.released == nil {
				entry.released = map[zoneKey]bool{}
			}
			entry.released[key], differs = released, true
		}
		if differs {
			changed = append(changed, name)
		}
	}
	b.mu.Unlock()
	b.requeueAll(changed)
}

// requeueAll requeues Gateways.
func (b *dnsBook) requeueAll(names []types.NamespacedName) {
	for _, name := range names {
		b.requeue(state.GatewayKey(name.Namespace, name.Name))
	}
}
