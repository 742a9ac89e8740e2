package tunnel

import (
	"fmt"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// act carries out the action of a step.
func (w *model) act(a int, f Facts, s Step, o outcome) {
	w.check(a, f, s)
	r := w.answer(a, f, s, o)
	switch o {
	case outcomeCrashActed, outcomeCrashLate:
		w.restart()
		return
	case outcomeLost:
		w.pass(provider.CallTimeout)
		r = Result{Err: unavailableError}
	default:
	}
	if kubernetes(s.Action) && (o == outcomeFails || o == outcomeLost) {
		r.Err = kubernetesError
	}
	if s.Action == Claim && r.Err == nil {
		w.actors[a].liveRivals = true
	}
	w.conclude(a, s, r)
}

// answer performs the action, or fails as the outcome says. It returns the result.
func (w *model) answer(a int, f Facts, s Step, o outcome) Result {
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
			w.pass(provider.CallTimeout)
		}
		call := w.call(a, f, s)
		call.until = w.now + provider.CallTimeout
		w.cloudflare.postpone(call)
		return Result{Err: unavailableError}
	default:
		return w.perform(a, f, s)
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

// recordedIndex returns the tunnel that the Tunnel records according to the Facts,
// or -1.
func recordedIndex(f Facts) int {
	if f.Object == nil {
		return -1
	}
	return tunnelIndex(f.Object.Status.TunnelID)
}

// call returns the call of a step that changes something at Cloudflare.
func (w *model) call(a int, f Facts, s Step) lateCall {
	call := lateCall{action: s.Action, actor: a, hash: s.Hash, tunnel: recordedIndex(f)}
	if f.Object != nil {
		call.name = nameIndex(f.Object.Spec.Name)
	}
	return call
}

// perform carries out the action and returns its result.
func (w *model) perform(a int, f Facts, s Step) Result {
	me := &w.actors[a]
	switch s.Action {
	case FindByName:
		return w.cloudflare.read(w.cloudflare.find(nameIndex(f.Object.Spec.Name)))
	case ReadTunnel:
		return w.cloudflare.read(recordedIndex(f))
	case Create, Configure, RotateToken, Delete:
		return w.performCall(a, f, s)
	case ReadConfiguration, ReadToken, ListConnections, Disconnect:
		return w.performOn(a, f, s)
	case RunConnectors:
		w.runConnectors(a, f)
	case StopConnectors:
		w.stopConnectors(a)
		me.liveObject = true
	case DeleteObject:
		return w.deleteObject(a, f)
	default:
	}
	return Result{}
}

// performCall carries out a call that changes something at Cloudflare.
func (w *model) performCall(a int, f Facts, s Step) Result {
	i, err := w.mutate(w.call(a, f, s))
	switch {
	case err != nil:
		return Result{Err: err}
	case s.Action == Create:
		return Result{Tunnel: w.cloudflare.describe(i)}
	case s.Action == Configure:
		return Result{Configuration: *f.Desired.Configuration, Version: provider.Version(w.cloudflare.tunnels[i].version)}
	default:
		return Result{}
	}
}

// deleteObject deletes the Tunnel object, unless it has changed.
func (w *model) deleteObject(a int, f Facts) Result {
	me := &w.actors[a]
	me.liveObject = true
	if !w.current(a, f) {
		me.liveGateway = true
		return Result{Stale: true}
	}
	w.loseObject(a)
	return Result{}
}

// performOn carries out an action on the tunnel that the Tunnel records.
func (w *model) performOn(a int, f Facts, s Step) Result {
	me, id := &w.actors[a], recordedIndex(f)
	t := w.cloudflare.get(id)
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
		return Result{Configuration: configurations[t.configuration], Version: provider.Version(t.version)}
	case ReadToken:
		uid := uidOf(f.Object)
		if me.secret.exists && me.secret.owner != uid {
			return Result{Err: &Failure{Reason: ReasonObjectTaken, Err: kubernetesError}}
		}
		me.secret = secretObject{exists: true, owner: uid, tunnel: id, token: t.token}
		me.liveObject = true
		w.collectLater(a, uid)
	case ListConnections:
		return Result{Connectors: t.connections()}
	case Disconnect:
		w.disconnect(id, s.Connector)
	default:
	}
	return Result{}
}

// disconnect removes the connections of a connector. A live one connects again
// when its token is still valid.
func (w *model) disconnect(tunnel int, id provider.ConnectorID) {
	t := &w.cloudflare.tunnels[tunnel]
	c := t.connector(id)
	if c == nil {
		return
	}
	if c.connected && c.token == t.token {
		c.at = w.now
		return
	}
	for a := range w.count {
		for i := range w.actors[a].pods {
			if p := &w.actors[a].pods[i]; p.connector == c.id && p.state == podConnected {
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

// collectLater lets the garbage collector look for objects whose owner is gone.
func (w *model) collectLater(a, uid int) {
	if me := &w.actors[a]; me.object == nil || me.object.uid != uid {
		me.collect = w.now + collectTime
	}
}

func (w *model) runConnectors(a int, f Facts) {
	me := &w.actors[a]
	uid := uidOf(f.Object)
	if f.Desired.RunConnectors {
		me.deployment = deployment{exists: true, owner: uid, tunnel: me.secret.tunnel, token: me.secret.token, grpc: f.Object.Status.HTTP2}
		w.roll(a)
	} else {
		w.stopConnectors(a)
	}
	me.liveObject = true
	w.collectLater(a, uid)
}
