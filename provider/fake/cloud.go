package fake

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// This file is what happens at Cloudflare without the provider. None of it is
// recorded as a call, and none of it does anything when the tunnel does not exist
// or was deleted.

// LiveTunnels returns the live tunnels in the order of their creation.
func (p *Provider) LiveTunnels() []provider.Tunnel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allLive()
}

// Document returns the configuration of a live tunnel and its version, or zero
// values when there is no such tunnel.
func (p *Provider) Document(id provider.TunnelID) (provider.Configuration, provider.Version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.live(id)
	if err != nil {
		return provider.Configuration{}, 0
	}
	return clone(t.document), t.version
}

// SetConfiguration replaces the configuration of a live tunnel without validation. It
// raises the version by one.
func (p *Provider) SetConfiguration(id provider.TunnelID, c provider.Configuration) {
	p.change(id, func(t *tunnel) { t.write(c) })
}

// SetLocal makes a live tunnel locally managed, or migrates it to remote
// management.
func (p *Provider) SetLocal(id provider.TunnelID, local bool) {
	p.change(id, func(t *tunnel) { t.local = local })
}

// SetRoutes adds private network routes to a live tunnel, or removes them.
func (p *Provider) SetRoutes(id provider.TunnelID, routes bool) {
	p.change(id, func(t *tunnel) { t.routes = routes })
}

// SetClock makes the provider take the time from now, instead of [time.Now].
func (p *Provider) SetClock(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// change changes a live tunnel.
func (p *Provider) change(id provider.TunnelID, do func(*tunnel)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, err := p.live(id); err == nil {
		do(t)
	}
}
