// Package fake implements [provider.Provider] and [provider.DNS] in memory, for tests. Both
// fakes behave like the real API when it is healthy, record all calls, and return the
// errors that a test scripts.
//
// They serve no HTTP requests; the simulator in test/edge does. Package providertest
// contains the contract tests for both implementations.
package fake

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// AccountID is the account ID in all tunnel tokens.
const AccountID = "00000000000000000000000000000000"

// Provider stores tunnels in memory. It is safe for concurrent use.
type Provider struct {
	mu         sync.Mutex
	tunnels    []*tunnel // in creation order, including deleted tunnels
	connectors int       // connectors started so far
	scripted   script
	calls      []Call
	now        func() time.Time
}

var _ provider.Provider = (*Provider)(nil)

type tunnel struct {
	id            provider.TunnelID
	name          string
	configuration provider.Configuration
	version       provider.Version
	secret        int // incremented by every rotation
	connectors    []*connector
	ran           bool // a connector ran at least once
	deleted       bool
	local         bool
	routes        bool
}

// New returns a provider without tunnels.
func New() *Provider {
	return &Provider{scripted: script{}, now: time.Now}
}

// FindTunnel is documented at [provider.Provider].
func (p *Provider) FindTunnel(ctx context.Context, name string) (provider.Tunnel, error) {
	var result provider.Tunnel
	err := p.do(ctx, Call{Op: OpFindTunnel, Name: name}, func(call *Call) error {
		t := p.named(name)
		if t == nil {
			return provider.ErrNotFound
		}
		call.Tunnel = t.id
		result = t.tunnel()
		return nil
	})
	if err != nil {
		return provider.Tunnel{}, err
	}
	return result, nil
}

// Tunnel is documented at [provider.Provider].
func (p *Provider) Tunnel(ctx context.Context, id provider.TunnelID) (provider.Tunnel, error) {
	return onTunnel(ctx, p, Call{Op: OpTunnel, Tunnel: id}, func(t *tunnel) provider.Tunnel { return t.tunnel() })
}

// Tunnels is documented at [provider.Provider].
func (p *Provider) Tunnels(ctx context.Context) ([]provider.Tunnel, error) {
	var result []provider.Tunnel
	err := p.do(ctx, Call{Op: OpTunnels}, func(*Call) error {
		result = p.allLive()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// CreateTunnel is documented at [provider.Provider].
func (p *Provider) CreateTunnel(ctx context.Context, name string) (provider.Tunnel, error) {
	var result provider.Tunnel
	err := p.do(ctx, Call{Op: OpCreateTunnel, Name: name}, func(call *Call) error {
		if p.named(name) != nil {
			return provider.ErrNameExists
		}
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", len(p.tunnels)+1)
		t := &tunnel{id: provider.TunnelID(id), name: name}
		p.tunnels = append(p.tunnels, t)
		call.Tunnel = t.id
		result = t.tunnel()
		return nil
	})
	if err != nil {
		return provider.Tunnel{}, err
	}
	return result, nil
}

// Configuration is documented at [provider.Provider].
func (p *Provider) Configuration(
	ctx context.Context, id provider.TunnelID,
) (provider.Configuration, provider.Version, error) {
	var result Call
	err := p.do(ctx, Call{Op: OpConfiguration, Tunnel: id}, func(call *Call) error {
		t, err := p.live(id)
		if err != nil {
			return err
		}
		if err := t.checkRemote(); err != nil {
			return err
		}
		call.Configuration, call.Version = clone(t.configuration), t.version
		result = *call
		return nil
	})
	if err != nil {
		return provider.Configuration{}, 0, err
	}
	return clone(result.Configuration), result.Version, nil
}

// Configure is documented at [provider.Provider].
func (p *Provider) Configure(
	ctx context.Context, id provider.TunnelID, c provider.Configuration,
) (provider.Version, error) {
	var version provider.Version
	call := Call{Op: OpConfigure, Tunnel: id, Configuration: clone(c)}
	err := p.do(ctx, call, func(call *Call) error {
		if err := provider.Validate(c); err != nil {
			return err
		}
		t, err := p.live(id)
		if err != nil {
			return err
		}
		t.write(c)
		version, call.Version = t.version, t.version
		return t.checkRemote()
	})
	if err != nil {
		return 0, err
	}
	return version, nil
}

// Token is documented at [provider.Provider].
func (p *Provider) Token(ctx context.Context, id provider.TunnelID) (provider.Token, error) {
	return onTunnel(ctx, p, Call{Op: OpToken, Tunnel: id}, (*tunnel).token)
}

// RotateToken is documented at [provider.Provider].
func (p *Provider) RotateToken(ctx context.Context, id provider.TunnelID) error {
	_, err := onTunnel(ctx, p, Call{Op: OpRotateToken, Tunnel: id}, func(t *tunnel) int {
		t.secret++
		return t.secret
	})
	return err
}

// Connections is documented at [provider.Provider].
func (p *Provider) Connections(ctx context.Context, id provider.TunnelID) ([]provider.Connector, error) {
	return onTunnel(ctx, p, Call{Op: OpConnections, Tunnel: id}, (*tunnel).connections)
}

// Disconnect is documented at [provider.Provider].
func (p *Provider) Disconnect(ctx context.Context, id provider.TunnelID, connector provider.ConnectorID) error {
	call := Call{Op: OpDisconnect, Tunnel: id, Connector: connector}
	return p.do(ctx, call, func(*Call) error {
		if connector == "" {
			return errors.New("the connector ID is empty")
		}
		if t, err := p.live(id); err == nil {
			t.disconnect(connector, p.now())
		}
		return nil
	})
}

// DeleteTunnel is documented at [provider.Provider].
func (p *Provider) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	return p.do(ctx, Call{Op: OpDeleteTunnel, Tunnel: id}, func(*Call) error {
		t, err := p.live(id)
		switch {
		case err != nil:
			return nil // already deleted
		case len(t.connectors) > 0:
			return provider.ErrConnected
		case t.routes:
			return provider.ErrRoutes
		}
		t.deleted = true
		return nil
	})
}

// onTunnel makes a call that requires a live tunnel, and returns its result.
func onTunnel[R any](ctx context.Context, p *Provider, call Call, apply func(*tunnel) R) (result R, err error) {
	var zero R
	err = p.do(ctx, call, func(*Call) error {
		t, err := p.live(call.Tunnel)
		if err == nil {
			result = apply(t)
		}
		return err
	})
	if err != nil {
		return zero, err
	}
	return result, nil
}

// do makes a call: it checks the context, returns scripted errors, records the call and
// wraps its error. It is locked while it calls apply.
func (p *Provider) do(ctx context.Context, call Call, apply func(*Call) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	call.Priority, call.Reservation = provider.PriorityOf(ctx), provider.ReservationOf(ctx)
	call.Err = p.outcome(ctx, &call, apply)
	p.calls = append(p.calls, call)
	if call.Err != nil {
		return fmt.Errorf("%s %q: %w", call.Op, cmp.Or(call.Name, string(call.Tunnel)), call.Err)
	}
	return nil
}

func (p *Provider) outcome(ctx context.Context, call *Call, apply func(*Call) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return p.scripted.run(call.Op, func() error { return apply(call) })
}

// named returns the live tunnel with the name, or nil.
func (p *Provider) named(name string) *tunnel {
	i := slices.IndexFunc(p.tunnels, func(t *tunnel) bool { return t.name == name && !t.deleted })
	if i < 0 {
		return nil
	}
	return p.tunnels[i]
}

func (p *Provider) live(id provider.TunnelID) (*tunnel, error) {
	i := slices.IndexFunc(p.tunnels, func(t *tunnel) bool { return t.id == id && !t.deleted })
	if i < 0 {
		return nil, provider.ErrNotFound
	}
	return p.tunnels[i], nil
}

// allLive returns the live tunnels in creation order.
func (p *Provider) allLive() []provider.Tunnel {
	var tunnels []provider.Tunnel
	for _, t := range p.tunnels {
		if !t.deleted {
			tunnels = append(tunnels, t.tunnel())
		}
	}
	return tunnels
}

func (t *tunnel) tunnel() provider.Tunnel {
	return provider.Tunnel{ID: t.id, Name: t.name, Status: t.status(), Local: t.local}
}

// checkRemote returns ErrLocallyManaged for a locally managed tunnel.
func (t *tunnel) checkRemote() error {
	if t.local {
		return provider.ErrLocallyManaged
	}
	return nil
}

// token returns a token in the same format as a real one. Its secret contains the number
// of rotations.
func (t *tunnel) token() provider.Token {
	key := fmt.Appendf(nil, "key %d of %s", t.secret+1, t.id)
	credentials, _ := json.Marshal(map[string]any{"a": AccountID, "t": t.id, "s": key}) // strings and bytes marshal
	return provider.Token(base64.StdEncoding.EncodeToString(credentials))
}

func (t *tunnel) write(c provider.Configuration) {
	t.configuration = clone(c)
	t.version++
}
