package fake

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// connector is a connector that Cloudflare lists.
type connector struct {
	id          provider.ConnectorID
	secret      int  // the tunnel's secret when the connector started
	crashed     bool // disconnected, and still listed
	connectedAt time.Time
}

// StartConnector starts a connector with a token and returns its ID. It returns an error
// if Cloudflare would refuse the token.
func (p *Provider) StartConnector(token provider.Token) (provider.ConnectorID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, id, err := token.Credentials()
	if err != nil {
		return "", err
	}
	t, err := p.live(id)
	if err != nil {
		return "", err
	}
	if string(t.token()) != string(token) {
		return "", errors.New("the token was rotated")
	}
	return p.attach(t), nil
}

// StopConnector stops a connector gracefully.
func (p *Provider) StopConnector(id provider.TunnelID, connectorID provider.ConnectorID) {
	p.change(id, func(t *tunnel) { t.removeConnectors(func(c *connector) bool { return c.id == connectorID }) })
}

// Crash stops a live tunnel's connectors abruptly; all of them if no ID is given.
// Cloudflare lists them as disconnected until [Provider.Disconnect] removes them. They do
// not reconnect.
func (p *Provider) Crash(id provider.TunnelID, connectors ...provider.ConnectorID) {
	p.change(id, func(t *tunnel) {
		for _, c := range t.connectors {
			c.crashed = c.crashed || len(connectors) == 0 || slices.Contains(connectors, c.id)
		}
	})
}

// SetConnected starts a connector for a live tunnel if none is connected, or stops all
// connected connectors gracefully.
func (p *Provider) SetConnected(id provider.TunnelID, connected bool) {
	p.change(id, func(t *tunnel) {
		switch {
		case !connected:
			t.removeConnectors(func(c *connector) bool { return !c.crashed })
		case !t.connected():
			p.attach(t)
		}
	})
}

// attach adds a connected connector to the tunnel.
func (p *Provider) attach(t *tunnel) provider.ConnectorID {
	p.connectors++
	c := &connector{
		id:     provider.ConnectorID(fmt.Sprintf("00000000-0000-4000-9000-%012d", p.connectors)),
		secret: t.secret, connectedAt: p.now(),
	}
	t.connectors = append(t.connectors, c)
	t.ran = true
	return c.id
}

// disconnect removes a connector's connections. A connected connector reconnects
// immediately, unless the secret was rotated after it started.
func (t *tunnel) disconnect(id provider.ConnectorID, now time.Time) {
	t.removeConnectors(func(c *connector) bool {
		return c.id == id && (c.crashed || c.secret != t.secret)
	})
	for _, c := range t.connectors {
		if c.id == id {
			c.connectedAt = now
		}
	}
}

func (t *tunnel) removeConnectors(match func(*connector) bool) {
	t.connectors = slices.DeleteFunc(t.connectors, match)
}

func (t *tunnel) connected() bool {
	return slices.ContainsFunc(t.connectors, func(c *connector) bool { return !c.crashed })
}

func (t *tunnel) status() provider.TunnelStatus {
	switch {
	case t.connected():
		return provider.TunnelHealthy
	case t.ran:
		return provider.TunnelDown
	}
	return provider.TunnelInactive
}

// connections returns the connectors as the API lists them.
func (t *tunnel) connections() []provider.Connector {
	var listed []provider.Connector
	for _, c := range t.connectors {
		one := provider.Connector{ID: c.id, Connected: !c.crashed, ConnectedAt: c.connectedAt}
		if !t.local {
			one.ConfigVersion = t.version
		}
		listed = append(listed, one)
	}
	return listed
}
