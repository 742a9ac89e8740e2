package fake

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Op names a method of [provider.Provider].
type Op string

// The methods.
const (
	OpFindTunnel    Op = "FindTunnel"
	OpTunnels       Op = "Tunnels"
	OpEnsureTunnel  Op = "EnsureTunnel"
	OpConfiguration Op = "Configuration"
	OpConfigure     Op = "Configure"
	OpToken         Op = "Token"
	OpDeleteTunnel  Op = "DeleteTunnel"
)

// Call is one call of the provider and what came of it.
type Call struct {
	Op Op
	// Priority of the call's context.
	Priority provider.Priority
	// Turn that the call shared with others, or nil.
	Turn *provider.Turn
	// Name of the tunnel that EnsureTunnel was asked for.
	Name string
	// Tunnel that the call was about; empty when EnsureTunnel made none.
	Tunnel provider.TunnelID
	// Configuration that was written or read.
	Configuration provider.Configuration
	// Version that was written or read; 0 when the call changed nothing.
	Version provider.Version
	// Err that was returned, without the words around it.
	Err error
}

type fault struct {
	err     error
	applied bool
}

// Fail makes the next calls of op return errs, one call each, without any
// other effect. A nil among them lets its call succeed. Faults of one op come
// in the order in which they were scripted.
func (p *Provider) Fail(op Op, errs ...error) { p.script(op, false, errs) }

// FailAfter is [Provider.Fail] for answers that were lost: the call is carried
// out, and then returns its error.
func (p *Provider) FailAfter(op Op, errs ...error) { p.script(op, true, errs) }

func (p *Provider) script(op Op, applied bool, errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, err := range errs {
		p.faults[op] = append(p.faults[op], fault{err: err, applied: applied})
	}
}

func (p *Provider) nextFault(op Op) fault {
	if len(p.faults[op]) == 0 {
		return fault{}
	}
	next := p.faults[op][0]
	p.faults[op] = p.faults[op][1:]
	return next
}

// Calls returns the calls so far in their order; only those of the given ops
// when there are any.
func (p *Provider) Calls(ops ...Op) []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	var calls []Call
	for _, call := range p.calls {
		if len(ops) == 0 || slices.Contains(ops, call.Op) {
			call.Configuration = clone(call.Configuration)
			calls = append(calls, call)
		}
	}
	return calls
}

// ResetCalls forgets the calls so far.
func (p *Provider) ResetCalls() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// LiveTunnels returns the live tunnels in the order of their creation. Created
// is false in all of them. It is not recorded as a call.
func (p *Provider) LiveTunnels() []provider.Tunnel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.allLive()
}

// Document returns the document of a live tunnel and its version, or zero
// values when there is no such tunnel. It is not recorded as a call.
func (p *Provider) Document(id provider.TunnelID) (provider.Configuration, provider.Version) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.live(id)
	if err != nil {
		return provider.Configuration{}, 0
	}
	return clone(t.document), t.version
}

// SetDocument replaces the document of a live tunnel as somebody else would:
// without a record and without validation. It raises the version by one, and
// does nothing when there is no such tunnel.
func (p *Provider) SetDocument(id provider.TunnelID, c provider.Configuration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, err := p.live(id); err == nil {
		t.write(c)
	}
}

// SetConnected says whether connectors of a live tunnel are running, which
// makes it healthy and impossible to delete. One whose connectors stopped is
// down; a tunnel that never had any stays inactive.
func (p *Provider) SetConnected(id provider.TunnelID, connected bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t, err := p.live(id)
	switch {
	case err != nil:
	case connected:
		t.status = provider.TunnelHealthy
	case t.status == provider.TunnelHealthy:
		t.status = provider.TunnelDown
	}
}

// SetLocal says whether a live tunnel is locally managed, as its owner makes it
// by running connectors with a file, or ends it by migrating the tunnel. It does
// nothing when there is no such tunnel.
func (p *Provider) SetLocal(id provider.TunnelID, local bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, err := p.live(id); err == nil {
		t.local = local
	}
}

// RotateToken gives a live tunnel another token, as somebody else would. It
// does nothing when there is no such tunnel.
func (p *Provider) RotateToken(id provider.TunnelID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, err := p.live(id); err == nil {
		t.rotations++
	}
}

// clone copies a document by its wire form, as the real provider's caller
// would get it back.
func clone(c provider.Configuration) provider.Configuration {
	var copied provider.Configuration
	document, _ := json.Marshal(c)        // strings, integers and booleans always marshal
	_ = json.Unmarshal(document, &copied) // and are read back
	copied.Unmodelled = maps.Clone(c.Unmodelled)
	for name, value := range copied.Unmodelled {
		copied.Unmodelled[name] = bytes.Clone(value)
	}
	return copied
}
