package tunnel

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// state returns what a live read says of the Gateway.
func (g gatewayObject) state() GatewayState {
	switch {
	case g.unknown:
		return GatewayUnknown
	case !g.exists:
		return GatewayGone
	case g.otherClass:
		return GatewayNotManaged
	default:
		return GatewayExists
	}
}

func (g gatewayObject) facts() Gateway {
	gw := Gateway{State: g.state()}
	if gw.State == GatewayExists {
		gw.UID, gw.Paused = types.UID(fmt.Sprint("g", g.uid)), g.paused
	}
	return gw
}

// view returns what the cache shows of an actor.
func (w *model) view(a int) view {
	if w.frozen != nil {
		return w.frozen[a]
	}
	return w.actors[a].view
}

// gather returns the Facts as the controller gathers them: from the cache, apart
// from what the reconcile has read or written itself, and apart from a Gateway
// that seems to be missing, which is always read live.
func (w *model) gather(a int) Facts {
	me, cached := &w.actors[a], w.view(a)
	live := me.view
	f := Facts{Uptime: w.uptime(), Clock: w.clock(), Options: options, Name: actorNames[a], Memory: me.memory}
	seen := cached
	if me.liveObject {
		seen.object, seen.secret, seen.deployment = live.object, live.secret, live.deployment
	}
	if me.liveGateway || cached.gateway.state() != GatewayExists {
		seen.gateway = live.gateway
	}
	f.Gateway = seen.gateway.facts()
	if f.Gateway.State == GatewayExists {
		f.Desired = desired(a, seen.gateway.settings)
	}
	f.Credentials = w.credentials()
	if seen.object != nil {
		t := seen.object.Tunnel
		f.Object = &t
		f.Rivals = w.rivals(a, seen.object, me.liveRivals)
	}
	for b := range w.count {
		other := w.view(b).object
		f.OtherRotating = f.OtherRotating || b != a && other != nil && other.Status.Token.Phase != ""
		f.Reserved = f.Reserved || b != a && w.actors[b].listing
	}
	f.Token = seen.tokenFacts()
	f.Connectors = seen.connectorFacts(f)
	return f
}

func (w *model) credentials() Credentials {
	if w.credentialsLost {
		return Credentials{State: CredentialsMissing, Message: "Secret cloudflare not found."}
	}
	return Credentials{State: CredentialsUsable, Version: fmt.Sprint("v", w.credentialsVersion)}
}

func (v view) tokenFacts() TokenSecret {
	switch {
	case v.object == nil || !v.secret.exists:
		return TokenSecret{State: TokenMissing}
	case v.secret.owner != v.object.uid:
		return TokenSecret{State: TokenNameConflict}
	case v.object.Status.TunnelID == "" || tunnelIndex(v.object.Status.TunnelID) != v.secret.tunnel:
		return TokenSecret{State: TokenMissing}
	}
	return TokenSecret{State: TokenPresent, Version: fmt.Sprint(v.secret.token)}
}

func (v view) connectorFacts(f Facts) Connectors {
	c := Connectors{Exist: v.deployment.exists, Current: v.deploymentCurrent(f), GracePeriod: gracePeriod, RolledOut: true}
	if f.Desired != nil && f.Desired.RunConnectors {
		c.Desired = 1
	}
	for _, p := range v.pods {
		if p.state == podNone {
			continue
		}
		c.Pods++
		current := p.runs(v.deployment)
		if p.state == podConnected && current {
			c.Ready++
		}
		c.RolledOut = c.RolledOut && current && p.state == podConnected
	}
	if c.Ready < c.Desired {
		c.Reason, c.Message, c.RolledOut = "ConnectorsNotReady", "0 of 1 connectors are ready.", false
	}
	return c
}

// deploymentCurrent reports whether the Deployment is as the Tunnel needs it.
func (v view) deploymentCurrent(f Facts) bool {
	switch {
	case f.Object == nil || f.Desired == nil:
		return false
	case !f.Desired.RunConnectors:
		return !v.deployment.exists
	default:
		return v.deployment == v.template(f)
	}
}

// template returns the Deployment that the Tunnel should have.
func (v view) template(f Facts) deployment {
	return deployment{exists: true, owner: v.object.uid, tunnel: v.secret.tunnel, token: v.secret.token, grpc: f.Object.Status.HTTP2}
}

func (p pod) runs(d deployment) bool {
	return d.exists && p.tunnel == d.tunnel && p.token == d.token && p.grpc == d.grpc
}

// rivals returns the other Tunnels that record the same tunnel, or ask for it. The
// model determines them by itself, without the function Rivals.
func (w *model) rivals(a int, mine *object, live bool) []Rival {
	var list []Rival
	if r := w.rivalObject(live); r.exists && slices.Contains(claimed(mine), tunnelIDs[0]) {
		list = append(list, Rival{Object: "rival", Recorded: r.recorded, Older: r.older, OtherController: r.otherController})
	}
	for b := range w.count {
		other := w.object(b, live)
		if b == a || other == nil {
			continue
		}
		if id := sharedTunnel(mine, other); id != "" {
			list = append(list, Rival{Object: other.Name, Recorded: other.Status.TunnelID == id, Older: other.uid < mine.uid, HasGatewayName: other.Spec.Existing == nil})
		}
	}
	return list
}

// rivalObject returns what a live read, or the cache, shows of the rival.
func (w *model) rivalObject(live bool) rivalObject {
	if w.frozen != nil && !live {
		return w.frozenRival
	}
	return w.rival
}

// object returns what a live read, or the cache, shows of the Tunnel of an actor.
func (w *model) object(a int, live bool) *object {
	if live {
		return w.actors[a].object
	}
	return w.view(a).object
}

// sharedTunnel returns the tunnel that both Tunnels record or ask for, or "".
func sharedTunnel(mine, other *object) string {
	theirs := claimed(other)
	for _, id := range claimed(mine) {
		if id != "" && slices.Contains(theirs, id) {
			return id
		}
	}
	return ""
}

// claimed returns the tunnels that a Tunnel records and asks for.
func claimed(o *object) []string {
	if o.Spec.Existing == nil {
		return []string{o.Status.TunnelID}
	}
	return []string{o.Status.TunnelID, o.Spec.Existing.ID}
}

// loseObject deletes the Tunnel object of an actor.
func (w *model) loseObject(a int) {
	me := &w.actors[a]
	me.object = nil
	me.collect = w.now + collectTime
	w.touch()
}

// roll starts a pod with the settings of the Deployment and stops the outdated
// pods. An outdated pod that is connected stops when the new pod is connected.
func (w *model) roll(a int) {
	me := &w.actors[a]
	exists, connected := me.currentPods()
	for i := range me.pods {
		if p := &me.pods[i]; p.active() && !p.runs(me.deployment) && (connected || p.state != podConnected) {
			w.stopPod(p)
		}
	}
	if !exists {
		w.startPod(a)
	}
}

// currentPods reports whether an active pod with the settings of the Deployment
// exists, and whether one is connected.
func (me *actor) currentPods() (exists, connected bool) {
	for _, p := range me.pods {
		if p.active() && p.runs(me.deployment) {
			exists, connected = true, connected || p.state == podConnected
		}
	}
	return exists, connected
}

// active reports whether the pod exists, does not stop, and its node is not lost.
func (p pod) active() bool {
	return p.state != podNone && p.state != podStopping && p.state != podStuck
}

// startPod starts a pod with the settings of the Deployment, if there is room.
func (w *model) startPod(a int) {
	me := &w.actors[a]
	for i := range me.pods {
		if d := me.deployment; me.pods[i].state == podNone {
			me.pods[i] = pod{state: podStarting, until: w.now + startTime, tunnel: d.tunnel, token: d.token, grpc: d.grpc}
			return
		}
	}
}

func (w *model) stopPod(p *pod) { p.state, p.until = podStopping, w.now+stopTime }

// stopConnectors deletes what runs the connectors.
func (w *model) stopConnectors(a int) {
	me := &w.actors[a]
	me.deployment = deployment{}
	for i := range me.pods {
		if p := &me.pods[i]; p.active() {
			w.stopPod(p)
		}
	}
}

// timers returns when the next thing happens by itself, or 0.
func (w *model) timers() time.Duration {
	next := time.Duration(0)
	earliest := func(t time.Duration) {
		if t != 0 && (next == 0 || t < next) {
			next = t
		}
	}
	for i := range w.count {
		earliest(w.actors[i].collect)
		for _, p := range w.actors[i].pods {
			earliest(p.until)
		}
	}
	for _, call := range w.cloudflare.late {
		earliest(call.until)
	}
	return next
}

// settle lets everything happen that is due.
func (w *model) settle() {
	for i, call := range w.cloudflare.late {
		if call.until != 0 && call.until <= w.now {
			w.arrive(i)
		}
	}
	for a := range w.count {
		me := &w.actors[a]
		if me.collect != 0 && me.collect <= w.now {
			w.collectGarbage(a)
		}
		for i := range me.pods {
			if p := &me.pods[i]; p.until != 0 && p.until <= w.now {
				w.settlePod(a, p)
			}
		}
	}
}

func (w *model) collectGarbage(a int) {
	me := &w.actors[a]
	me.collect = 0
	owned := func(uid int) bool { return me.object != nil && me.object.uid == uid }
	if me.secret.exists && !owned(me.secret.owner) {
		me.secret = secretObject{}
		w.touch()
	}
	if me.deployment.exists && !owned(me.deployment.owner) {
		w.stopConnectors(a)
		w.touch()
	}
}

// settlePod lets a pod start or stop.
func (w *model) settlePod(a int, p *pod) {
	p.until = 0
	t := w.cloudflare.get(p.tunnel)
	switch {
	case p.state == podStopping:
		if t != nil && p.connector != 0 {
			t.drop(p.connector, true)
		}
		*p = pod{}
		w.roll0(a)
	case t == nil || t.token != p.token:
		p.state = podRefused
	default:
		w.checkConnect(a, p.tunnel)
		w.connectorIDs++
		p.state, p.connector = podConnected, w.connectorIDs
		t.connect(remoteConnector{id: p.connector, connected: true, token: p.token, at: w.now})
		w.roll0(a)
	}
	w.touch()
}

// roll0 continues a rollout, if there is one.
func (w *model) roll0(a int) {
	if w.actors[a].deployment.exists {
		w.roll(a)
	}
}
