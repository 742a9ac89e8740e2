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
	OpTunnel        Op = "Tunnel"
	OpTunnels       Op = "Tunnels"
	OpCreateTunnel  Op = "CreateTunnel"
	OpConfiguration Op = "Configuration"
	OpConfigure     Op = "Configure"
	OpToken         Op = "Token"
	OpRotateToken   Op = "RotateToken"
	OpConnections   Op = "Connections"
	OpDisconnect    Op = "Disconnect"
	OpDeleteTunnel  Op = "DeleteTunnel"
)

// Call is one call of the provider and its outcome.
type Call struct {
	Op Op
	// Priority of the call's context.
	Priority provider.Priority
	// Turn that the call shared with others, or nil.
	Turn *provider.Reservation
	// Name is the argument of FindTunnel or CreateTunnel.
	Name string
	// Tunnel that the call was about; empty when FindTunnel found none or
	// CreateTunnel created none.
	Tunnel provider.TunnelID
	// Connector is the argument of Disconnect.
	Connector provider.ConnectorID
	// Configuration that was written or read.
	Configuration provider.Configuration
	// Version that was written or read; 0 when the call changed nothing.
	Version provider.Version
	// Err that was returned, without the action that wraps it.
	Err error
}

type fault struct {
	err     error
	applied bool
}

// Fail makes the next calls of op return errs, one call each, without any
// other effect. A nil error lets its call succeed. Faults of one op apply in the
// order in which they were scripted.
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

// clone copies a document by its wire form, as the real provider's caller
// would get it back.
func clone(c provider.Configuration) provider.Configuration {
	var copied provider.Configuration
	document, _ := json.Marshal(c)        // strings, integers and booleans always marshal
	_ = json.Unmarshal(document, &copied) // and are read back
	copied.UnknownFields = maps.Clone(c.UnknownFields)
	for name, value := range copied.UnknownFields {
		copied.UnknownFields[name] = bytes.Clone(value)
	}
	return copied
}
