// Package fake is a provider in memory, for the tests of whoever uses one. It
// behaves as the real provider does towards a healthy API, records the calls
// and fails when it is told to.
//
// It answers, it does not serve: requests to a tunnel belong to the simulator
// in test/edge. What both providers must do is written down in providertest.
package fake

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// AccountID is the account of every tunnel, as their tokens say.
const AccountID = "00000000000000000000000000000000"

// Provider keeps tunnels in memory. It may be used from several goroutines at
// once.
type Provider struct {
	mu      sync.Mutex
	tunnels []*tunnel // in the order of creation, the deleted ones too
	faults  map[Op][]fault
	calls   []Call
}

var _ provider.Provider = (*Provider)(nil)

type tunnel struct {
	id        provider.TunnelID
	name      string
	document  provider.Configuration
	version   provider.Version
	status    provider.TunnelStatus
	rotations int
	deleted   bool
	local     bool // its connectors ignore the document
}

// New returns a provider without tunnels.
func New() *Provider {
	return &Provider{faults: map[Op][]fault{}}
}

// FindTunnel is documented at [provider.Provider].
func (p *Provider) FindTunnel(ctx context.Context, name string) (provider.Tunnel, error) {
	var result provider.Tunnel
	err := p.carryOut(ctx, Call{Op: OpFindTunnel, Name: name}, func(call *Call) error {
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

// Tunnels is documented at [provider.Provider].
func (p *Provider) Tunnels(ctx context.Context) ([]provider.Tunnel, error) {
	var result []provider.Tunnel
	err := p.carryOut(ctx, Call{Op: OpTunnels}, func(*Call) error {
		result = p.allLive()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// EnsureTunnel is documented at [provider.Provider].
func (p *Provider) EnsureTunnel(ctx context.Context, want provider.TunnelSpec) (provider.Tunnel, error) {
	var result provider.Tunnel
	call := Call{Op: OpEnsureTunnel, Name: want.Name}
	err := p.carryOut(ctx, call, func(call *Call) error {
		t := p.named(want.Name)
		created := t == nil
		if created {
			id := fmt.Sprintf("00000000-0000-4000-8000-%012d", len(p.tunnels)+1)
			t = &tunnel{id: provider.TunnelID(id), name: want.Name, status: provider.TunnelInactive}
			p.tunnels = append(p.tunnels, t)
		}
		result = t.tunnel()
		result.Created = created
		call.Tunnel = t.id
		return t.checkRemote()
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
	err := p.carryOut(ctx, Call{Op: OpConfiguration, Tunnel: id}, func(call *Call) error {
		t, err := p.live(id)
		if err != nil {
			return err
		}
		if err := t.checkRemote(); err != nil {
			return err
		}
		call.Configuration, call.Version = clone(t.document), t.version
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
	err := p.carryOut(ctx, call, func(call *Call) error {
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
	var result provider.Token
	err := p.carryOut(ctx, Call{Op: OpToken, Tunnel: id}, func(*Call) error {
		t, err := p.live(id)
		if err != nil {
			return err
		}
		result = t.token()
		return nil
	})
	if err != nil {
		return "", err
	}
	return result, nil
}

// DeleteTunnel is documented at [provider.Provider].
func (p *Provider) DeleteTunnel(ctx context.Context, id provider.TunnelID) error {
	return p.carryOut(ctx, Call{Op: OpDeleteTunnel, Tunnel: id}, func(*Call) error {
		t, err := p.live(id)
		if err != nil {
			return nil // it is gone, which is what was asked for
		}
		if err := t.checkRemote(); err != nil {
			return err
		}
		if t.status == provider.TunnelHealthy {
			return provider.ErrConnected
		}
		t.deleted = true
		return nil
	})
}

// carryOut does what every method has in common: the context, the faults, the
// record and the words around an error. The provider is locked during do.
func (p *Provider) carryOut(ctx context.Context, call Call, do func(*Call) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	call.Priority, call.Turn = provider.PriorityOf(ctx), provider.TurnOf(ctx)
	call.Err = p.outcome(ctx, &call, do)
	p.calls = append(p.calls, call)
	if call.Err != nil {
		return fmt.Errorf("%s %q: %w", call.Op, cmp.Or(call.Name, string(call.Tunnel)), call.Err)
	}
	return nil
}

func (p *Provider) outcome(ctx context.Context, call *Call, do func(*Call) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fault := p.nextFault(call.Op)
	if fault.err != nil && !fault.applied {
		return fault.err
	}
	if err := do(call); err != nil {
		return err
	}
	return fault.err
}

// named returns the live tunnel of that name, or nil.
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

// allLive returns the live tunnels in the order of their creation.
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
	return provider.Tunnel{ID: t.id, Name: t.name, Status: t.status}
}

// checkRemote returns ErrLocallyManaged for a tunnel that is.
func (t *tunnel) checkRemote() error {
	if t.local {
		return provider.ErrLocallyManaged
	}
	return nil
}

// token is in the form of a real one; its secret counts the rotations.
func (t *tunnel) token() provider.Token {
	key := fmt.Appendf(nil, "key %d of %s", t.rotations+1, t.id)
	credentials, _ := json.Marshal(map[string]any{"a": AccountID, "t": t.id, "s": key}) // strings and bytes marshal
	return provider.Token(base64.StdEncoding.EncodeToString(credentials))
}

func (t *tunnel) write(c provider.Configuration) {
	t.document = clone(c)
	t.version++
}
