package tunnel

import (
	"reflect"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// hasher computes a key with 128 bits.
type hasher struct{ a, b uint64 }

func (h *hasher) add(x uint64) {
	h.a = (h.a ^ x) * 0x9e3779b97f4a7c15
	h.a ^= h.a >> 32
	h.b = (h.b + x) * 0xd6e8feb86659fd93
	h.b ^= h.b >> 29
}

func (h *hasher) int(x int) { h.add(uint64(x)) } // #nosec G115 -- any mapping is valid

func (h *hasher) duration(d time.Duration) { h.add(uint64(d)) } // #nosec G115 -- any mapping is valid

func (h *hasher) bools(list ...bool) {
	x := uint64(1)
	for _, b := range list {
		x <<= 1
		if b {
			x |= 1
		}
	}
	h.add(x)
}

func (h *hasher) string(s string) {
	sum := uint64(14695981039346656037)
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * 1099511628211
	}
	h.add(sum)
}

// until adds the time from now to t. A zero t means never, and past times are equal to
// now.
func (h *hasher) until(t, now time.Duration) {
	if t == 0 {
		h.add(0)
		return
	}
	h.duration(1 + max(t-now, 0))
}

// decisionHash hashes the fields that decisions depend on: not derived fields, and not
// versions.
func decisionHash(t *v1alpha1.Tunnel) uint64 {
	var h hasher
	s := t.Spec
	h.string(s.ControllerName)
	h.string(s.ClusterUID)
	h.string(s.AccountID)
	h.string(s.Name)
	h.string(string(s.DeletionPolicy))
	h.bools(s.Paused, s.Existing != nil, s.Existing != nil && s.Existing.Takeover)
	if s.Existing != nil {
		h.string(s.Existing.ID)
	}
	h.string(t.Annotations[v1alpha1.RotateTokenAnnotation])
	h.string(t.Annotations[v1alpha1.ReconcileAnnotation])
	h.string(t.Status.Reconciled)
	r := t.Status
	h.int(int(r.SchemaVersion))
	h.string(r.TunnelID)
	h.string(r.GatewayUID)
	h.string(string(r.DataPlane))
	if change := r.DataPlaneChange; change != nil {
		h.string(string(change.To))
		h.string(string(change.Phase))
	}
	h.bools(r.Creating, r.Deleting, r.Contested, r.HTTP2, r.Token.RotatedAt != nil)
	h.string(r.Configuration.Hash)
	h.string(r.Configuration.Previous)
	h.string(r.Configuration.Late)
	h.string(r.Token.Requested)
	h.string(string(r.Token.Phase))
	return h.a ^ h.b
}

// key returns the model's canonical form: two models with the same key behave the same.
// Times are relative to now and limited where a larger value makes no difference.
// Versions, UIDs and IDs are relative to each other.
func (m *model) key() [2]uint64 {
	var h hasher
	uptime := m.uptime()
	h.duration(min(uptime, provider.CallTimeout))
	h.bools(uptime >= tokenInterval/2, uptime >= tokenInterval, m.adminChanged, m.credentialsLost, m.staleCache != nil, m.noRoom, m.envoyFails)
	h.bools(m.rival.exists, m.rival.recorded, m.rival.older, m.rival.otherController)
	for i := range m.cloudflare.tunnels {
		h.tunnel(m, &m.cloudflare.tunnels[i])
	}
	for _, call := range m.cloudflare.late {
		h.until(call.until, m.now)
		if call.until != 0 {
			h.string(string(call.action))
			h.string(call.hash)
			h.int(call.tunnel)
			h.int(int(call.name))
		}
	}
	for a := range m.count {
		h.actor(m, &m.actors[a])
	}
	if m.staleCache != nil {
		h.int(m.staleSleeps)
		h.bools(m.staleRival.exists, m.staleRival.recorded, m.staleRival.older, m.staleRival.otherController)
		for a := range m.count {
			actor, old := &m.actors[a], &m.staleCache[a]
			h.bools(actor.object == old.object, actor.object != nil && old.object != nil && actor.object.uid == old.object.uid)
			h.view(m, actor, old)
		}
	}
	return [2]uint64{h.a, h.b}
}

func (h *hasher) tunnel(m *model, t *remoteTunnel) {
	h.bools(t.used, t.live, t.local, t.routes, t.original, t.external)
	if !t.live {
		return
	}
	h.int(int(t.name)<<8 | int(t.configuration))
	h.int(t.creator)
	h.int(t.token) // tokens are replaced a limited number of times
	for _, c := range t.connectors {
		h.bools(c.id != 0, c.connected, c.unmanaged, c.token == t.token, m.beforeRotation(c))
	}
}

// beforeRotation reports whether a connector connected before a recorded rotation.
func (m *model) beforeRotation(c remoteConnector) bool {
	for a := range m.count {
		if o := m.actors[a].object; o != nil && o.Status.Token.RotatedAt != nil && epoch.Add(c.at).Before(o.Status.Token.RotatedAt.Time) {
			return true
		}
	}
	return false
}

func (h *hasher) view(m *model, actor *actor, v *view) {
	if v.object == nil {
		h.add(0)
	} else {
		h.add(v.object.hash)
	}
	h.gateway(v.gateway)
	h.bools(v.secret.exists, v.object != nil && v.secret.owner == v.object.uid, v.deployment.exists, v.deployment.grpc, v.deployment.envoy,
		v.object != nil && v.deployment.owner == v.object.uid, actor.object != nil && v.secret.owner == actor.object.uid)
	h.int(v.secret.tunnel<<16 | v.secret.token)
	h.int(v.deployment.tunnel<<16 | v.deployment.token)
	for _, p := range v.pods {
		h.int(int(p.state)<<24 | p.tunnel<<16 | p.token)
		h.bools(p.grpc, p.envoy)
		h.until(p.until, m.now)
	}
	h.int(int(v.scaled)<<8 | int(v.envoys))
}

func (h *hasher) gateway(g gatewayObject) {
	h.bools(g.exists, g.otherClass, g.unknown, g.paused, g.settings.retain, g.settings.takeover, g.settings.invalid, g.settings.grpc, g.settings.connectorsDisabled, g.settings.unaccepted,
		g.settings.limited, g.settings.envoy, g.settings.excess)
	h.int(g.uid<<16 | int(g.settings.identity)<<8 | int(g.settings.routes))
}

func (h *hasher) actor(m *model, actor *actor) {
	h.view(m, actor, &actor.view)
	h.bools(actor.running, actor.liveObject, actor.liveGateway, actor.liveRivals, actor.mustList, actor.reconcileDue, actor.waitRepeated, actor.readSince, actor.builtBoth, actor.unreleased, actor.applicationsRemain)
	h.string(string(actor.built))
	if actor.backup != nil {
		h.add(actor.backup.hash)
	}
	h.until(actor.collectAt, m.now)
	if m.count > 1 && actor.nextReconcile-m.now > contestedInterval {
		h.soon(actor.nextReconcile - m.now) // otherwise the drift intervals of two Gateways would give too many states
	} else {
		h.until(actor.nextReconcile, m.now)
	}
	h.duration(actor.lastWait)
	if actor.missing != 0 {
		h.duration(min(m.now-actor.missing, actor.delay()))
	}
	if actor.revokedAt != 0 {
		h.duration(min(m.now-actor.revokedAt, revokeLimit.Interval))
	}
	if actor.exposedSince != 0 {
		h.duration(1 + min(m.now-actor.exposedSince, 2*maxExposure))
	}
	h.memory(m, actor)
}

// maxAges contains, for each Instant in the Memory by field name, the age above which
// its exact age makes no difference.
var maxAges = map[string]time.Duration{
	"Created": provider.CallTimeout, "Deleted": provider.CallTimeout,
	"ConnectorsStopped": gracePeriod + stopMargin, "RecordsRemainSince": releaseTimeout, "ApplicationsRemainSince": releaseTimeout, "SurplusSince": gracePeriod, "UnacknowledgedSince": maxUnacknowledged,
	"Read": maxBackoff, "Last": 2 * maxGap, "Until": 0, "Settled": 0, "Rotated": 0, "Started": refreshInterval, "Unanswered": provider.CallTimeout,
}

func (h *hasher) memory(m *model, actor *actor) {
	memory := &actor.memory
	h.bools(memory.CredentialsVersion == m.credentials().Version)
	h.bools(memory.Created.settled(memory.Remote.Tunnel.Read), memory.Deleted.settled(memory.Remote.Tunnel.Read))
	live := 0
	if actor.object != nil {
		if t := m.cloudflare.get(tunnelIndex(actor.object.Status.TunnelID)); t != nil {
			live = t.version
		}
	}
	version := int(memory.Remote.Configuration.Version)
	h.int(min(version, 1))
	h.int(max(min(live-version, 3), -3))
	h.int(max(min(version-int(memory.Drift.Version), 2), -2))
	h.int(len(memory.Drift.Times))
	h.value(reflect.ValueOf(memory).Elem(), m, "")
}

// value adds a part of the Memory. Fields without a canonical form are added unchanged,
// so that new fields are included.
func (h *hasher) value(v reflect.Value, m *model, field string) {
	switch v.Type() {
	case instantType:
		h.instant(v, m, field)
	case problemType:
		h.problem(v)
	case connectorType:
		h.connector(v, m)
	case revocationsType: // no namespace causes a change in the model
		h.duration(v.Interface().(Revocations).wait(m.uptime(), revokeLimit, nil))
	case bucketType:
		h.duration(v.Interface().(Bucket).wait(m.uptime(), updateLimit))
	case configurationType: // its hash is added instead
	default:
		h.plain(v, m, field)
	}
}

// plain adds a value whose type has no canonical form.
func (h *hasher) plain(v reflect.Value, m *model, field string) {
	switch v.Kind() {
	case reflect.Struct:
		h.fields(v, m)
	case reflect.Array, reflect.Slice:
		h.int(v.Len())
		for i := range v.Len() {
			h.value(v.Index(i), m, field)
		}
	case reflect.String:
		h.string(v.String())
	case reflect.Bool:
		h.bools(v.Bool())
	case reflect.Int, reflect.Int64:
		h.int(int(v.Int()))
	default:
		panic("no canonical form for " + v.Type().String())
	}
}

// fields adds a struct's fields.
func (h *hasher) fields(v reflect.Value, m *model) {
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Version", "Drift", "CredentialsVersion": // see memory
		case "NextRead":
			h.soon(time.Duration(v.Field(i).Int()) - m.uptime())
		default:
			h.value(v.Field(i), m, name)
		}
	}
}

// problem adds a problem's reason.
func (h *hasher) problem(v reflect.Value) {
	if h.bools(v.IsNil()); !v.IsNil() {
		h.string(v.Elem().Field(0).String())
	}
}

var (
	instantType       = reflect.TypeFor[Instant]()
	problemType       = reflect.TypeFor[*Problem]()
	connectorType     = reflect.TypeFor[provider.Connector]()
	revocationsType   = reflect.TypeFor[Revocations]()
	bucketType        = reflect.TypeFor[Bucket]()
	configurationType = reflect.TypeFor[provider.Configuration]()
)

// soon adds a time in the far future: it makes a difference only whether the time has
// passed or is within a minute.
func (h *hasher) soon(remaining time.Duration) {
	h.bools(remaining <= 0, remaining <= contestedInterval)
}

func (h *hasher) instant(v reflect.Value, m *model, field string) {
	if h.bools(v.Field(0).Bool()); !v.Field(0).Bool() {
		return
	}
	remaining := time.Duration(v.Field(1).Int()) - m.uptime()
	if field == "NextCheck" {
		h.soon(remaining)
		return
	}
	limit, known := maxAges[field]
	if !known {
		limit = time.Hour
	}
	if field == "MissingSince" {
		limit = retirementDelay
		for a := range m.count {
			limit = max(limit, m.actors[a].delay())
		}
	}
	h.duration(max(remaining, -limit))
}

// delay returns how long the Gateway must be missing before its Tunnel retires.
func (actor *actor) delay() time.Duration {
	if actor.object != nil && actor.object.Status.GatewayUID == "" {
		return time.Hour
	}
	return retirementDelay
}

// connector adds a listed connector by its current index at Cloudflare.
func (h *hasher) connector(v reflect.Value, m *model) {
	c := v.Interface().(provider.Connector)
	h.bools(c.Connected)
	before := false
	for a := range m.count {
		if o := m.actors[a].object; o != nil && o.Status.Token.RotatedAt != nil && c.ConnectedAt.Before(o.Status.Token.RotatedAt.Time) {
			before = true
		}
	}
	h.bools(before)
	for i := range m.cloudflare.tunnels {
		for j, live := range m.cloudflare.tunnels[i].connectors {
			if live.id != 0 && connectorID(live.id) == c.ID {
				h.int(i<<8 | j)
			}
		}
	}
}
