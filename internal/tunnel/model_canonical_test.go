package tunnel

import (
	"reflect"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// hasher makes a key of 128 bits.
type hasher struct{ a, b uint64 }

func (h *hasher) add(x uint64) {
	h.a = (h.a ^ x) * 0x9e3779b97f4a7c15
	h.a ^= h.a >> 32
	h.b = (h.b + x) * 0xd6e8feb86659fd93
	h.b ^= h.b >> 29
}

func (h *hasher) int(x int) { h.add(uint64(x)) } // #nosec G115 -- any mapping does

func (h *hasher) duration(d time.Duration) { h.add(uint64(d)) } // #nosec G115 -- any mapping does

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

// until adds how long it is until t; 0 is never, and the past is the present.
func (h *hasher) until(t, now time.Duration) {
	if t == 0 {
		h.add(0)
		return
	}
	h.duration(1 + max(t-now, 0))
}

// sumOf hashes what decisions depend on: neither what is derived, nor versions.
func sumOf(t *v1alpha1.Tunnel) uint64 {
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
	r := t.Status
	h.string(r.TunnelID)
	h.string(r.GatewayUID)
	h.bools(r.Creating, r.Deleting, r.Contested, r.HTTP2, r.Token.RotatedAt != nil)
	h.string(r.Configuration.Hash)
	h.string(r.Configuration.Previous)
	h.string(r.Configuration.Late)
	h.string(r.Token.Requested)
	h.string(string(r.Token.Phase))
	return h.a ^ h.b
}

// key returns the canonical form of the world: two worlds with the same key
// behave alike. Moments are relative to now, and saturate where a larger value
// makes no difference; versions, UIDs and IDs are relative to each other.
func (w *model) key() [2]uint64 {
	var h hasher
	up := w.uptime()
	h.duration(min(up, provider.CallTimeout))
	h.bools(up >= tokenInterval/2, up >= tokenInterval, w.admin, w.credentialsLost, w.frozen != nil)
	h.bools(w.rival.exists, w.rival.recorded, w.rival.older, w.rival.otherController)
	for i := range w.cloudflare.tunnels {
		h.tunnel(w, &w.cloudflare.tunnels[i])
	}
	for _, call := range w.cloudflare.late {
		h.until(call.until, w.now)
		if call.until != 0 {
			h.string(string(call.action))
			h.string(call.hash)
			h.int(call.tunnel)
			h.int(int(call.name))
		}
	}
	for a := range w.count {
		h.actor(w, &w.actors[a])
	}
	if w.frozen != nil {
		h.int(w.frozenSleeps)
		h.bools(w.frozenRival.exists, w.frozenRival.recorded, w.frozenRival.older, w.frozenRival.otherController)
		for a := range w.count {
			me, old := &w.actors[a], &w.frozen[a]
			h.bools(me.object == old.object, me.object != nil && old.object != nil && me.object.uid == old.object.uid)
			h.view(w, me, old)
		}
	}
	return [2]uint64{h.a, h.b}
}

func (h *hasher) tunnel(w *model, t *remoteTunnel) {
	h.bools(t.used, t.live, t.local, t.routes, t.original, t.external)
	if !t.live {
		return
	}
	h.int(int(t.name)<<8 | int(t.configuration))
	h.int(t.creator)
	h.int(t.token) // tokens are only ever replaced, so their number is bounded
	for _, c := range t.connectors {
		h.bools(c.id != 0, c.connected, c.foreign, c.token == t.token, w.beforeRotation(c))
	}
}

// beforeRotation reports whether a connector connected before a rotation that is
// recorded.
func (w *model) beforeRotation(c remoteConnector) bool {
	for a := range w.count {
		if o := w.actors[a].object; o != nil && o.Status.Token.RotatedAt != nil && epoch.Add(c.at).Before(o.Status.Token.RotatedAt.Time) {
			return true
		}
	}
	return false
}

func (h *hasher) view(w *model, me *actor, v *view) {
	if v.object == nil {
		h.add(0)
	} else {
		h.add(v.object.sum)
	}
	h.gateway(v.gateway)
	h.bools(v.secret.exists, v.object != nil && v.secret.owner == v.object.uid, v.deployment.exists, v.deployment.grpc,
		v.object != nil && v.deployment.owner == v.object.uid, me.object != nil && v.secret.owner == me.object.uid)
	h.int(v.secret.tunnel<<16 | v.secret.token)
	h.int(v.deployment.tunnel<<16 | v.deployment.token)
	for _, p := range v.pods {
		h.int(int(p.state)<<24 | p.tunnel<<16 | p.token)
		h.bools(p.grpc)
		h.until(p.until, w.now)
	}
}

func (h *hasher) gateway(g gatewayObject) {
	h.bools(g.exists, g.otherClass, g.unknown, g.paused, g.settings.retain, g.settings.takeover, g.settings.invalid, g.settings.grpc, g.settings.unmanaged, g.settings.unaccepted)
	h.int(g.uid<<16 | int(g.settings.identity)<<8 | int(g.settings.routes))
}

func (h *hasher) actor(w *model, me *actor) {
	h.view(w, me, &me.view)
	h.bools(me.running, me.liveObject, me.liveGateway, me.liveRivals, me.listing, me.dirty, me.repeated)
	if me.backup != nil {
		h.add(me.backup.sum)
	}
	h.until(me.collect, w.now)
	if w.count > 1 && me.wake-w.now > contestedInterval {
		h.soon(me.wake - w.now) // or the drift intervals of two Gateways would never meet again
	} else {
		h.until(me.wake, w.now)
	}
	h.duration(me.waited)
	if me.missing != 0 {
		h.duration(min(w.now-me.missing, me.delay()))
	}
	h.memory(w, me)
}

// caps say how long ago a moment of the Memory may be to make a difference.
var caps = map[string]time.Duration{
	"Created": provider.CallTimeout, "Deleted": provider.CallTimeout,
	"ConnectorsStopped": gracePeriod + stopMargin, "SurplusSince": gracePeriod,
	"Read": maxBackoff, "Last": 2 * maxGap, "Until": 0, "Settled": 0, "Rotated": 0, "Unanswered": provider.CallTimeout,
}

func (h *hasher) memory(w *model, me *actor) {
	m := &me.memory
	h.bools(m.CredentialsVersion == w.credentials().Version)
	h.bools(m.Created.settled(m.Remote.Tunnel.Read), m.Deleted.settled(m.Remote.Tunnel.Read))
	live := 0
	if me.object != nil {
		if t := w.cloudflare.get(tunnelIndex(me.object.Status.TunnelID)); t != nil {
			live = t.version
		}
	}
	version := int(m.Remote.Configuration.Version)
	h.int(min(version, 1))
	h.int(max(min(live-version, 3), -3))
	h.int(max(min(version-int(m.Drift.Version), 2), -2))
	h.int(len(m.Drift.Times))
	h.value(reflect.ValueOf(m).Elem(), w, "")
}

// value adds a part of the Memory. Other fields than those that are named here
// are added as they are, so that a new one is not forgotten.
func (h *hasher) value(v reflect.Value, w *model, field string) {
	switch v.Type() {
	case instantType:
		h.instant(v, w, field)
	case problemType:
		h.problem(v)
	case connectorType:
		h.connector(v, w)
	case configurationType: // its hash is added
	default:
		h.plain(v, w, field)
	}
}

// plain adds a value of a type that has no canonical form of its own.
func (h *hasher) plain(v reflect.Value, w *model, field string) {
	switch v.Kind() {
	case reflect.Struct:
		h.fields(v, w)
	case reflect.Array, reflect.Slice:
		h.int(v.Len())
		for i := range v.Len() {
			h.value(v.Index(i), w, field)
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

// fields adds the fields of a struct.
func (h *hasher) fields(v reflect.Value, w *model) {
	for i := range v.NumField() {
		switch name := v.Type().Field(i).Name; name {
		case "Version", "Drift", "CredentialsVersion": // see memory
		case "NextRead":
			h.soon(time.Duration(v.Field(i).Int()) - w.uptime())
		default:
			h.value(v.Field(i), w, name)
		}
	}
}

// problem adds the reason of a problem.
func (h *hasher) problem(v reflect.Value) {
	if h.bools(v.IsNil()); !v.IsNil() {
		h.string(v.Elem().Field(0).String())
	}
}

var (
	instantType       = reflect.TypeFor[Instant]()
	problemType       = reflect.TypeFor[*Problem]()
	connectorType     = reflect.TypeFor[provider.Connector]()
	configurationType = reflect.TypeFor[provider.Configuration]()
)

// soon adds a moment that lies far in the future: only whether it has come, or
// comes within a minute, makes a difference.
func (h *hasher) soon(left time.Duration) {
	h.bools(left <= 0, left <= contestedInterval)
}

func (h *hasher) instant(v reflect.Value, w *model, field string) {
	if h.bools(v.Field(0).Bool()); !v.Field(0).Bool() {
		return
	}
	left := time.Duration(v.Field(1).Int()) - w.uptime()
	if field == "NextCheck" {
		h.soon(left)
		return
	}
	limit, known := caps[field]
	if !known {
		limit = time.Hour
	}
	if field == "MissingSince" {
		limit = retirementDelay
		for a := range w.count {
			limit = max(limit, w.actors[a].delay())
		}
	}
	h.duration(max(left, -limit))
}

// delay returns for how long the Gateway must be missing before its Tunnel
// retires.
func (me *actor) delay() time.Duration {
	if me.object != nil && me.object.Status.GatewayUID == "" {
		return time.Hour
	}
	return retirementDelay
}

// connector adds a connector that was listed, by its place at Cloudflare now.
func (h *hasher) connector(v reflect.Value, w *model) {
	c := v.Interface().(provider.Connector)
	h.bools(c.Connected)
	before := false
	for a := range w.count {
		if o := w.actors[a].object; o != nil && o.Status.Token.RotatedAt != nil && c.ConnectedAt.Before(o.Status.Token.RotatedAt.Time) {
			before = true
		}
	}
	h.bools(before)
	for i := range w.cloudflare.tunnels {
		for j, live := range w.cloudflare.tunnels[i].connectors {
			if live.id != 0 && connectorID(live.id) == c.ID {
				h.int(i<<8 | j)
			}
		}
	}
}
