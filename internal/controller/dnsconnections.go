package controller

import (
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// connectionInterval is how soon the tunnels of an account are listed to find out
	// whether a connector has been connected. The interval doubles up to
	// maxConnectionInterval.
	connectionInterval    = 30 * time.Second
	maxConnectionInterval = 10 * time.Minute
)

// connectionCheck is when Cloudflare is next asked whether a connector has been connected
// to a Gateway's tunnel. The zero value is due.
type connectionCheck struct{ due, delay time.Duration }

// connections finds out whether a connector has been connected to a tunnel whose
// connectors the controller does not run. Only then does the Gateway get DNS records.
// It sends a request only while such a Gateway has hostnames in a zone that is managed.
type connections struct {
	book     *dnsBook
	accounts *accounts
	clock    clock
}

// Start checks the connections until the context is canceled.
func (c *connections) Start(ctx context.Context) error {
	ticker := time.NewTicker(connectionInterval)
	defer ticker.Stop()
	for {
		// The manager does not recover from a panic.
		if err := recovery.Call(ctx, func() error { return c.check(ctx) }); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("failed to find out which tunnels have connectors", "cause", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// check lists the tunnels of each account in which a Gateway waits for a connector.
func (c *connections) check(ctx context.Context) error {
	waiting := c.book.awaitConnectors(c.clock.uptime())
	if len(waiting) == 0 {
		return nil
	}
	var errs []error
	for _, a := range c.accounts.all() {
		if !slices.Contains(waiting, a.id) {
			continue
		}
		tunnels, err := a.provider.Tunnels(provider.WithPriority(ctx, provider.PriorityDrift))
		errs = append(errs, err)
		for _, t := range tunnels {
			switch t.Status {
			case provider.TunnelHealthy, provider.TunnelDegraded, provider.TunnelDown:
				c.book.connect(a.id, t.ID)
			case provider.TunnelInactive: // no connector has ever run
			}
		}
	}
	return errors.Join(errs...)
}

// awaitConnectors returns the accounts with a Gateway about whose connectors Cloudflare
// must be asked now.
func (b *dnsBook) awaitConnectors(uptime time.Duration) (accounts []string) {
	managed := b.zones.managed("")
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entry := range b.entries {
		g := entry.gateway
		if !entry.external || g.Connected || g.Tunnel == "" || g.State != ownership.Accepted || uptime < entry.check.due || !entry.hasHostname(managed) {
			continue
		}
		entry.check.delay = min(max(connectionInterval, 2*entry.check.delay), maxConnectionInterval)
		entry.check.due = uptime + entry.check.delay
		accounts = append(accounts, entry.account)
	}
	return accounts
}

// hasHostname reports whether a hostname of the Gateway is in one of the zones.
func (e *dnsEntry) hasHostname(zones []zoneKey) bool {
	return slices.ContainsFunc(zones, func(key zoneKey) bool {
		return key.account == e.account && slices.ContainsFunc(e.gateway.Hostnames, func(h dns.Hostname) bool { return dns.InZone(h.Name, key.name) })
	})
}

// connect records that a connector has been connected to the tunnel.
func (b *dnsBook) connect(account string, id provider.TunnelID) {
	connected := false
	b.mu.Lock()
	for _, entry := range b.entries {
		if entry.account == account && entry.gateway.Tunnel == id && !entry.gateway.Connected {
			entry.gateway.Connected, entry.connected, entry.check, connected = true, id, connectionCheck{}, true
		}
	}
	b.mu.Unlock()
	if connected {
		b.enqueueAll(b.zones.listed(account))
	}
}
