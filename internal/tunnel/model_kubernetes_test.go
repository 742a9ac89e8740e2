package tunnel

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// state returns what a live read reports about the Gateway.
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

// view returns what the cache contains about an actor.
func (m *model) view(a int) view {
	if m.staleCache != nil {
		return m.staleCache[a]
	}
	return m.actors[a].view
}

// gather returns the Facts as the controller gathers them: from the cache, except objects
// that the reconcile has read live or written. A Gateway that is missing in the cache is
// always read live.
func (m *model) gather(a int) Facts {
	actor, cached := &m.actors[a], m.view(a)
	live := actor.view
	f := Facts{Uptime: m.uptime(), Clock: m.clock(), Options: options, Name: actorNames[a], Memory: actor.memory}
	seen := cached
	if actor.liveObject {
		seen.object, seen.secret, seen.deployment = live.object, live.secret, live.deployment
	}
	if m.ownTunnelCurrent {
		seen.object, seen.deployment, seen.pods = live.object, live.deployment, live.pods
	}
	if actor.liveGateway || cached.gateway.state() != GatewayExists {
		seen.gateway = live.gateway
	}
	f.Gateway = seen.gateway.facts()
	if f.Gateway.State == GatewayExists {
		f.Desired = desired(a, seen.gateway.settings, cmp.Or(actor.built, seen.gateway.settings.dataPlane()), actor.builtBoth)
	}
	f.Credentials = m.credentials()
	if seen.object != nil {
		t := seen.object.Tunnel
		f.Object = &t
		f.Rivals = m.rivals(a, seen.object, actor.liveRivals)
	}
	f.OtherRotating, f.Reserved = m.otherActors(a)
	f.DNS.Unreleased, f.Access.Unreleased = actor.unreleased, actor.applicationsRemain
	f.Token = seen.tokenFacts()
	f.Connectors, f.Envoys = seen.connectorFacts(f), seen.envoyFacts()
	return f
}

// otherActors reports whether another actor's token is being rotated, and whether
// another actor is claiming its tunnel.
func (m *model) otherActors(a int) (rotating, claiming bool) {
	for b := range m.count {
		other := m.view(b).object
		rotating = rotating || b != a && other != nil && other.Status.Token.Phase != ""
		claiming = claiming || b != a && m.actors[b].mustList
	}
	return rotating, claiming
}

// build builds the desired configuration. The build reads the Tunnel from the cache.
func (m *model) build(a int) {
	actor, cached := &m.actors[a], m.view(a)
	actor.built, actor.builtBoth = "", false
	if cached.object != nil {
		actor.built = RecordedDataPlane(&cached.object.Tunnel)
		actor.builtBoth = NeedsBoth(&cached.object.Tunnel, cached.gateway.settings.dataPlane())
	}
}

// envoyFacts returns what the xDS server reports about the Envoys.
func (v view) envoyFacts() (e Envoys) {
	for _, p := range v.pods {
		if p.state == podConnected && p.envoy && v.envoys != envoysDisconnected {
			e.Connected++
		}
	}
	if e.Connected == 0 {
		return Envoys{}
	}
	e.Acknowledged, e.Unsettled = v.envoys == envoysAcknowledged, v.envoys == envoysSlow
	if v.envoys == envoysRejected {
		e.Rejected = "bad route"
	}
	return e
}

func (m *model) credentials() Credentials {
	if m.credentialsLost {
		return Credentials{State: CredentialsMissing, Message: "Secret cloudflare not found."}
	}
	return Credentials{State: CredentialsUsable, Version: fmt.Sprint("v", m.credentialsVersion)}
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
	c := Connectors{Exist: v.deployment.exists, Current: v.deploymentCurrent(f), GracePeriod: gracePeriod, RolledOut: v.deployment.exists}
	if f.Desired != nil && f.Desired.RunConnectors {
		c.Desired = int32(v.replicas()) // #nosec G115 -- small
	}
	for _, p := range v.pods {
		if p.state == podNone {
			continue
		}
		c.Pods++
		if p.envoy {
			c.WithEnvoy++
		} else {
			c.WithoutEnvoy++
		}
		d := v.deployment
		d.envoy = p.envoy // the Deployment's status can be older than its list of pods
		current := p.runs(d)
		if p.state == podConnected && current {
			c.Ready++
		}
		c.RolledOut = c.RolledOut && current && p.state == podConnected
	}
	if c.Ready < c.Desired {
		c.Reason, c.Message, c.RolledOut = conditions.ReasonUnavailable, "Connectors are not ready.", false
	}
	return c
}

// deploymentCurrent reports whether the Deployment is as desired.
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

// template returns the desired Deployment.
func (v view) template(f Facts) deployment {
	return deployment{exists: true, owner: v.object.uid, tunnel: v.secret.tunnel, token: v.secret.token, grpc: f.Object.Status.HTTP2, envoy: RunsEnvoy(f.Object)}
}

func (p pod) runs(d deployment) bool {
	return d.exists && p.tunnel == d.tunnel && p.token == d.token && p.grpc == d.grpc && p.envoy == d.envoy
}

// rivals returns the other Tunnels that record or request the same tunnel. It does not use
// the function Rivals.
func (m *model) rivals(a int, current *object, live bool) []Rival {
	var list []Rival
	if r := m.rivalObject(live); r.exists && slices.Contains(claimed(current), tunnelIDs[0]) {
		list = append(list, Rival{Object: "rival", Recorded: r.recorded, Older: r.older, OtherController: r.otherController})
	}
	for b := range m.count {
		other := m.object(b, live)
		if b == a || other == nil {
			continue
		}
		if id := sharedTunnel(current, other); id != "" {
			list = append(list, Rival{Object: other.Name, Recorded: other.Status.TunnelID == id, Older: other.uid < current.uid, HasGatewayName: other.Spec.Existing == nil})
		}
	}
	return list
}

// rivalObject returns the rival according to a live read or the cache.
func (m *model) rivalObject(live bool) rivalObject {
	if m.staleCache != nil && !live {
		return m.staleRival
	}
	return m.rival
}

// object returns an actor's Tunnel from a live read or the cache.
func (m *model) object(a int, live bool) *object {
	if live {
		return m.actors[a].object
	}
	return m.view(a).object
}

// sharedTunnel returns the tunnel that both Tunnels record or request, or "".
func sharedTunnel(current, other *object) string {
	otherClaims := claimed(other)
	for _, id := range claimed(current) {
		if id != "" && slices.Contains(otherClaims, id) {
			return id
		}
	}
	return ""
}

// claimed returns the tunnels that a Tunnel records and requests.
func claimed(o *object) []string {
	if o.Spec.Existing == nil {
		return []string{o.Status.TunnelID}
	}
	return []string{o.Status.TunnelID, o.Spec.Existing.ID}
}

// loseObject removes an actor's Tunnel object.
func (m *model) loseObject(a int) {
	actor := &m.actors[a]
	actor.object = nil
	actor.collectAt = m.now + collectTime
	m.requeueAll()
}

// rollOut stops outdated pods and starts one pod with the Deployment's settings. A
// connected outdated pod stops only if enough other pods are connected.
func (m *model) rollOut(a int) {
	actor := &m.actors[a]
	replicas := actor.replicas()
	current, connected := actor.countPods()
	for i := range actor.pods {
		p := &actor.pods[i]
		switch outdated := !p.runs(actor.deployment); {
		case !p.active():
		case outdated && p.state == podConnected && connected > replicas:
			connected--
			m.stopPod(p)
		case outdated && p.state != podConnected:
			m.stopPod(p)
		case !outdated && current > replicas:
			current--
			m.stopPod(p)
		}
	}
	if current < replicas {
		m.startPod(a)
	}
}

// countPods counts the active pods with the Deployment's settings, and the connected
// pods.
func (actor *actor) countPods() (current, connected int) {
	for _, p := range actor.pods {
		if p.active() && p.runs(actor.deployment) {
			current++
		}
		if p.active() && p.state == podConnected {
			connected++
		}
	}
	return current, connected
}

// active reports whether the pod exists, is not stopping, and its node is not lost.
func (p pod) active() bool {
	return p.state != podNone && p.state != podStopping && p.state != podStuck
}

// startPod starts a pod with the Deployment's settings if the model has room for it.
func (m *model) startPod(a int) {
	actor := &m.actors[a]
	for i := range actor.pods {
		if d := actor.deployment; actor.pods[i].state == podNone {
			actor.pods[i] = pod{state: podStarting, until: m.now + startTime, tunnel: d.tunnel, token: d.token, grpc: d.grpc, envoy: d.envoy}
			if m.keepsPending(d.envoy) {
				actor.pods[i].state, actor.pods[i].until = podPending, 0
			}
			return
		}
	}
}

func (m *model) stopPod(p *pod) { p.state, p.until = podStopping, m.now+stopTime }

// stopConnectors deletes the Deployment and stops its pods.
func (m *model) stopConnectors(a int) {
	actor := &m.actors[a]
	actor.deployment = deployment{}
	for i := range actor.pods {
		if p := &actor.pods[i]; p.active() {
			m.stopPod(p)
		}
	}
}

// timers returns when the next timer is due, or 0.
func (m *model) timers() time.Duration {
	next := time.Duration(0)
	earliest := func(t time.Duration) {
		if t != 0 && (next == 0 || t < next) {
			next = t
		}
	}
	for i := range m.count {
		earliest(m.actors[i].collectAt)
		for _, p := range m.actors[i].pods {
			earliest(p.until)
		}
	}
	for _, call := range m.cloudflare.late {
		earliest(call.until)
	}
	return next
}

// settle applies everything that is due.
func (m *model) settle() {
	for i, call := range m.cloudflare.late {
		if call.until != 0 && call.until <= m.now {
			m.arrive(i)
		}
	}
	for a := range m.count {
		actor := &m.actors[a]
		if actor.collectAt != 0 && actor.collectAt <= m.now {
			m.collectGarbage(a)
		}
		for i := range actor.pods {
			if p := &actor.pods[i]; p.until != 0 && p.until <= m.now {
				m.settlePod(a, p)
			}
		}
	}
}

func (m *model) collectGarbage(a int) {
	actor := &m.actors[a]
	actor.collectAt = 0
	owned := func(uid int) bool { return actor.object != nil && actor.object.uid == uid }
	if actor.secret.exists && !owned(actor.secret.owner) {
		actor.secret = secretObject{}
		m.requeueAll()
	}
	if actor.deployment.exists && !owned(actor.deployment.owner) {
		m.stopConnectors(a)
		m.requeueAll()
	}
}

// settlePod completes a pod's start or stop.
func (m *model) settlePod(a int, p *pod) {
	p.until = 0
	t := m.cloudflare.get(p.tunnel)
	switch {
	case p.state == podStopping:
		if t != nil && p.connector != 0 {
			t.removeConnector(p.connector, true)
		}
		*p = pod{}
		m.continueRollOut(a)
	case t == nil || t.token != p.token:
		p.state = podRefused
	default:
		m.checkConnect(a, p.tunnel)
		m.connectorIDs++
		p.state, p.connector = podConnected, m.connectorIDs
		t.connect(remoteConnector{id: p.connector, connected: true, token: p.token, at: m.now})
		m.continueRollOut(a)
	}
	m.requeueAll()
}

// continueRollOut continues the rollout if the Deployment exists.
func (m *model) continueRollOut(a int) {
	if m.actors[a].deployment.exists {
		m.rollOut(a)
	}
}
