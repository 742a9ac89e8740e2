package fake

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Op names a [provider.Provider] method.
type Op string

// The methods of [provider.Provider].
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

// Call is one call to the provider and its outcome.
type Call struct {
	Op Op
	// Priority comes from the call's context.
	Priority provider.Priority
	// Reservation comes from the call's context, or is nil.
	Reservation *provider.Reservation
	// Name is the argument to FindTunnel or CreateTunnel.
	Name string
	// Tunnel is the call's tunnel. It is empty if FindTunnel found no tunnel or
	// CreateTunnel created none.
	Tunnel provider.TunnelID
	// Connector is the argument to Disconnect.
	Connector provider.ConnectorID
	// Configuration is the configuration that the call wrote or read.
	Configuration provider.Configuration
	// Version is the version that the call wrote or read; 0 if it did neither.
	Version provider.Version
	// Err is the call's error, without the wrapping operation.
	Err error
}

// script contains the errors of the next calls to each method, in order.
type script map[Op][]scriptedError

type scriptedError struct {
	err     error
	applied bool
}

// Fail makes the next calls to op return errs, one error per call, without any other
// effect. A nil error lets the call succeed. Errors for one op are returned in the order
// in which they were scripted.
func (p *Provider) Fail(op Op, errs ...error) { p.script(op, false, errs) }

// FailAfter is like [Provider.Fail], but the calls take effect before they return their
// error, as if the response was lost.
func (p *Provider) FailAfter(op Op, errs ...error) { p.script(op, true, errs) }

// ClearFailures removes the errors that no call has returned yet.
func (p *Provider) ClearFailures() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.scripted)
}

func (p *Provider) script(op Op, applied bool, errs []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scripted.add(op, applied, errs)
}

func (s script) add(op Op, applied bool, errs []error) {
	for _, err := range errs {
		s[op] = append(s[op], scriptedError{err: err, applied: applied})
	}
}

// run calls apply, unless the next scripted error for the method takes its place, and
// returns the call's error.
func (s script) run(op Op, apply func() error) error {
	var next scriptedError
	if len(s[op]) > 0 {
		next = s[op][0]
		s[op] = s[op][1:]
	}
	if next.err != nil && !next.applied {
		return next.err
	}
	if err := apply(); err != nil {
		return err
	}
	return next.err
}

// Calls returns the recorded calls in order. If ops are given, it returns only calls to
// these methods.
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

// ResetCalls removes the recorded calls.
func (p *Provider) ResetCalls() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

// clone returns a deep copy of c by way of JSON, so that the copy is what the real
// provider would return.
func clone(c provider.Configuration) provider.Configuration {
	var copied provider.Configuration
	encoded, _ := json.Marshal(c)        // strings, integers and booleans always marshal
	_ = json.Unmarshal(encoded, &copied) // valid JSON always unmarshals
	copied.UnknownFields = maps.Clone(c.UnknownFields)
	for name, value := range copied.UnknownFields {
		copied.UnknownFields[name] = bytes.Clone(value)
	}
	return copied
}
