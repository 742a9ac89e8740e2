package fake

import (
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The methods in this file simulate changes at Cloudflare that are not made by the
// provider. They are not recorded as calls, and have no effect if the tunnel does not
// exist or was deleted.

// LiveTunnels returns the live tunnels in the order in which they were created.
func (p *Provider) LiveTunnels() []provider.Tunnel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allLive()
}

// StoredConfiguration returns a live tunnel's configuration and version, or zero values
// if the tunnel does not exist.
func (p *Provider) StoredConfiguration(id provider.TunnelID) (provider.Configuration, provider.Version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.live(id)
	if err != nil {
		return provider.Configuration{}, 0
	}
	return clone(t.configuration), t.version
}

// SetConfiguration replaces a live tunnel's configuration without validation, and
// increments the version.
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

// SetClock makes the provider use now instead of [time.Now].
func (p *Provider) SetClock(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// change calls apply with a live tunnel.
func (p *Provider) change(id provider.TunnelID, apply func(*tunnel)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, err := p.live(id); err == nil {
		apply(t)
	}
}
