package tunnel

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// act executes a step's action.
func (m *model) act(a int, f Facts, s Step, o outcome) {
	m.check(a, f, s)
	r := m.respond(a, f, s, o)
	switch o {
	case outcomeCrashActed, outcomeCrashLate:
		m.restart()
		return
	case outcomeLost:
		m.sleep(provider.CallTimeout)
		r = Result{Err: unavailableError}
	default:
	}
	if kubernetes(s.Action) && (o == outcomeFails || o == outcomeLost) {
		r.Err = kubernetesError
	}
	if s.Action == Claim && r.Err == nil {
		m.actors[a].liveRivals = true
	}
	m.conclude(a, s, r)
}

// respond executes the action, or fails according to the outcome. It returns the result.
func (m *model) respond(a int, f Facts, s Step, o outcome) Result {
	switch o {
	case outcomeFails:
		return Result{Err: unavailableError}
	case outcomeLimited:
		return Result{Err: limitedError}
	case outcomeBudget:
		return Result{Err: budgetError}
	case outcomeUnauthorized:
		return Result{Err: provider.ErrUnauthorized}
	case outcomeLate, outcomeCrashLate:
		if o == outcomeLate {
			m.sleep(provider.CallTimeout)
		}
		call := m.call(a, f, s)
		call.until = m.now + provider.CallTimeout
		m.cloudflare.postpone(call)
		return Result{Err: unavailableError}
	default:
		return m.perform(a, f, s)
	}
}

// kubernetes reports whether the action calls the API server.
func kubernetes(action Action) bool {
	switch action {
	case Claim, RunConnectors, StopConnectors, WithdrawStatuses, DeleteObject:
		return true
	default:
		return false
	}
}

// recordedIndex returns the index of the tunnel that is recorded according to the Facts, or
// -1.
func recordedIndex(f Facts) int {
	if f.Object == nil {
		return -1
	}
	return tunnelIndex(f.Object.Status.TunnelID)
}

// call returns a step's call that makes a change at Cloudflare.
func (m *model) call(a int, f Facts, s Step) lateCall {
	call := lateCall{action: s.Action, actor: a, hash: s.Hash, tunnel: recordedIndex(f)}
	if f.Object != nil {
		call.name = nameIndex(f.Object.Spec.Name)
	}
	return call
}

// perform executes the action and returns its result.
func (m *model) perform(a int, f Facts, s Step) Result {
	actor := &m.actors[a]
	switch s.Action {
	case FindByName:
		return m.cloudflare.read(m.cloudflare.find(nameIndex(f.Object.Spec.Name)))
	case ReadTunnel:
		return m.cloudflare.read(recordedIndex(f))
	case Create, Configure, RotateToken, Delete:
		return m.performCall(a, f, s)
	case ReadConfiguration, ReadToken, ListConnections, Disconnect:
		return m.performOn(a, f, s)
	case RunConnectors:
		m.runConnectors(a, f)
	case StopConnectors:
		m.stopConnectors(a)
		actor.liveObject = true
	case DeleteObject:
		return m.deleteObject(a, f)
	default:
	}
	return Result{}
}

// performCall executes a call that makes a change at Cloudflare.
func (m *model) performCall(a int, f Facts, s Step) Result {
	i, err := m.applyCall(m.call(a, f, s))
	switch {
	case err != nil:
		return Result{Err: err}
	case s.Action == Create:
		m.actors[a].readSince = true
		return Result{Tunnel: m.cloudflare.describe(i)}
	case s.Action == Configure:
		return Result{Configuration: *s.Configuration, Version: provider.Version(m.cloudflare.tunnels[i].version)}
	default:
		return Result{}
	}
}

// deleteObject deletes the Tunnel object if it has not changed.
func (m *model) deleteObject(a int, f Facts) Result {
	actor := &m.actors[a]
	actor.liveObject = true
	if !m.current(a, f) {
		actor.liveGateway = true
		return Result{Stale: true}
	}
	m.loseObject(a)
	return Result{}
}

// performOn executes an action on the recorded tunnel.
func (m *model) performOn(a int, f Facts, s Step) Result {
	actor, id := &m.actors[a], recordedIndex(f)
	t := m.cloudflare.get(id)
	switch {
	case t == nil && s.Action == Disconnect:
		return Result{}
	case t == nil:
		return Result{Err: provider.ErrNotFound}
	}
	switch s.Action {
	case ReadConfiguration:
		if t.local {
			return Result{Err: provider.ErrLocallyManaged}
		}
		actor.readSince = true
		return Result{Configuration: configurations[t.configuration], Version: provider.Version(t.version)}
	case ReadToken:
		uid := uidOf(f.Object)
		if actor.secret.exists && actor.secret.owner != uid {
			return Result{Err: &Failure{Reason: conditions.ReasonObjectTaken, Err: kubernetesError}}
		}
		actor.secret = secretObject{exists: true, owner: uid, tunnel: id, token: t.token}
		actor.liveObject = true
		m.collectLater(a, uid)
	case ListConnections:
		return Result{Connectors: t.connections()}
	case Disconnect:
		m.disconnect(id, s.Connector)
	default:
	}
	return Result{}
}

// disconnect removes a connector's connections. A live connector reconnects if its
// token is still valid.
func (m *model) disconnect(tunnel int, id provider.ConnectorID) {
	t := &m.cloudflare.tunnels[tunnel]
	c := t.connector(id)
	if c == nil {
		return
	}
	if c.connected && c.token == t.token {
		c.at = m.now
		return
	}
	for a := range m.count {
		for i := range m.actors[a].pods {
			if p := &m.actors[a].pods[i]; p.connector == c.id && p.state == podConnected {
				p.state = podRefused
			}
		}
	}
	*c = remoteConnector{}
}

func uidOf(t *v1alpha1.Tunnel) (uid int) {
	_, _ = fmt.Sscanf(string(t.UID), "u%d", &uid)
	return uid
}

// collectLater schedules a garbage collection if the owner with the UID is gone.
func (m *model) collectLater(a, uid int) {
	if actor := &m.actors[a]; actor.object == nil || actor.object.uid != uid {
		actor.collectAt = m.now + collectTime
	}
}

func (m *model) runConnectors(a int, f Facts) {
	actor := &m.actors[a]
	uid := uidOf(f.Object)
	if f.Desired.RunConnectors {
		actor.deployment = deployment{
			exists: true, owner: uid, tunnel: actor.secret.tunnel, token: actor.secret.token,
			grpc: f.Object.Status.HTTP2, envoy: RunsEnvoy(f.Object),
		}
		m.rollOut(a)
	} else {
		m.stopConnectors(a)
	}
	actor.liveObject = true
	m.collectLater(a, uid)
}
