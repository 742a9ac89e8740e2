package access

import (
	"reflect"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/exploration"
)

// modelFar is the age above which the exact age makes no difference.
const modelFar = modelAdoptionAge + 5*time.Minute

// modelHasher computes a state's canonical form. IDs and AUD tags are numbered in the order
// in which they appear.
type modelHasher struct {
	exploration.Hasher
	w   *modelWorld
	now time.Duration // the uptime of the process whose Memory is hashed
	ids map[string]uint64
}

func (h *modelHasher) id(id string) {
	n, known := h.ids[id]
	if !known {
		n = uint64(len(h.ids)) + 1
		h.ids[id] = n
	}
	h.Add(n)
}

// key returns the world's canonical form: two worlds with the same key behave the same.
func (w *modelWorld) key() [2]uint64 {
	h := modelHasher{w: w, ids: map[string]uint64{}}
	h.Bools(append(w.cloud.policies[:], w.quiet())...)
	h.Int(w.cloud.quota)
	h.Int(len(w.cloud.applications))
	for _, a := range w.cloud.applications {
		h.application(a.Application)
		h.Recent(a.late, w.now, 3*time.Minute)
		for _, g := range a.issued {
			h.Int(int(g.policies))
			h.Int(int(g.session))
			h.Bools(g.all)
		}
	}
	for _, tag := range w.cloud.tags {
		h.String(tag)
	}
	for i := range w.count {
		h.install(&w.installs[i])
	}
	return h.Key()
}

func (h *modelHasher) application(a provider.Application) {
	h.id(string(a.ID))
	h.id(a.AUDTag)
	h.Int(len(a.Domains)<<16 | len(a.Policies)<<8 | len(a.Tags))
	for _, domain := range a.Domains {
		h.String(domain)
	}
	for _, policy := range a.Policies {
		h.String(string(policy))
	}
	for _, tag := range a.Tags {
		h.String(tag)
	}
	h.Int(int(a.SessionDuration))
	h.Bools(a.Bypass, a.OtherPolicies > 0, a.BindingCookie)
	h.String(a.Name)
}

func (h *modelHasher) install(in *modelInstall) {
	now := h.w.now
	h.Bools(in.due, in.revoked, in.noToken, in.noKey, in.renamed, in.missing, in.short, in.second, in.disagrees, in.freely, in.seen.any, in.report == nil)
	h.Int(in.key<<24 | in.token<<16 | in.uid<<8 | in.limit)
	h.String(string(in.modes[0]) + string(in.modes[1]))
	for _, entries := range in.entries {
		h.specs(&entries)
	}
	h.When(in.wake, now, modelFar)
	h.Recent(in.boot, now, modelFar)
	for n := range in.gateways {
		if g := &in.gateways[n]; g.present() {
			h.gateway(g)
		}
	}
	for _, since := range in.unwanted {
		h.Recent(since, now, modelDelay)
	}
	for _, q := range in.requests {
		h.String(q.Hostname)
		h.id(q.ID)
		h.Int(int(min(now-q.Requested.Sub(modelEpoch), modelFar)))
	}
	for _, l := range in.late {
		h.When(l.until, now, modelFar)
		h.Bools(l.sent <= in.boot)
		for _, write := range l.writes {
			h.String(string(write.Operation) + write.Hostname + write.Tag + describeSpec(write.Spec))
			h.id(string(write.Last.ID))
		}
	}
	h.Recent(in.seen.at, now, modelReadAge)
	for _, a := range in.seen.list {
		h.application(a)
	}
	h.now = h.w.uptime(in.index)
	h.value(in.memory)
	if in.report != nil {
		h.Bools(in.report.Read)
		h.value(in.report.Gateways)
		h.value(in.report.Tagged)
		h.value(in.report.Allows)
		h.value(in.report.Released)
	}
	for n := range in.gateways {
		if in.gateways[n].present() {
			h.value(in.gateways[n].exposure)
		}
	}
}

func (h *modelHasher) specs(specs *[modelNameCount]modelSpec) {
	x := 0
	for _, s := range specs {
		x = x<<4 | int(s)
	}
	h.Int(x)
}

func (h *modelHasher) gateway(g *modelGateway) {
	now := h.w.now
	h.Bools(g.exists, g.tunnel, g.paused, g.blocked, g.rejected, g.retained, g.unread, g.envoy, g.due, g.read, g.reported == nil)
	h.Int(g.class<<8 | g.tunnels)
	h.When(g.wake, now, modelFar)
	if !g.exists {
		h.Recent(g.gone, now, modelRetirement)
	}
	h.specs(&g.entries)
	h.specs(&g.policies)
	for name := range modelNames {
		host, t := g.hosts[name], g.guards[name]
		h.Bools(host.claimed, host.routed, host.denied, t.protected, t.open)
		h.String(host.namespace)
		h.Int(int(t.decided.spec)<<16 | int(t.decided.level)<<8 | t.decided.at)
		h.Recent(t.gone, now, modelDelay)
		h.Recent(t.demanded, now, modelMaxOpen+2*time.Second)
		for _, r := range []modelRule{g.configuration[name], g.published[name], g.desired[name]} {
			h.Int(int(r.kind))
			h.id(r.tag)
		}
	}
	if g.reported != nil {
		h.reported(g.reported)
	}
}

// reported adds what the account knows about a Gateway.
func (h *modelHasher) reported(g *Gateway) {
	h.Int(int(g.State))
	h.Bools(g.HasTunnel, g.DemandsUnknown, g.InEffectKnown)
	for _, d := range g.Demands {
		h.String(d.Hostname + d.Owner)
		h.Int(int(d.Level))
		h.Int(int(d.SessionDuration))
		h.Bools(d.Permitted, d.NamedByClass)
		for _, policy := range d.Policies {
			h.String(string(policy))
		}
	}
	for _, host := range g.Hostnames {
		h.String(host.Name + host.Namespace)
		h.Bools(host.Permitted, host.Exempt)
	}
	for _, tag := range g.InEffect {
		h.id(tag)
	}
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	errorType    = reflect.TypeFor[error]()
)

// memoryKey returns the Memory's canonical form.
func (w *modelWorld) memoryKey(i int, m Memory) [2]uint64 {
	h := modelHasher{w: w, ids: map[string]uint64{}, now: w.uptime(i)}
	h.value(m)
	return h.Key()
}

// value adds a value of the package under test.
func (h *modelHasher) value(v any) { h.Value(reflect.ValueOf(v), "", h.special) }

// spans are the fields that are durations, and no uptimes.
var spans = map[string]bool{"SessionDuration": true}

// maxAges contains, for uptimes by field name, the age above which the exact age makes no
// difference. The others have [modelFar].
var maxAges = map[string]time.Duration{
	"Since": 0, "repairs": 0, "until": 0, "retry": 0, "read": readInterval, "updated": updateInterval, "unheld": modelDelay, "unwanted": modelDelay,
	"gone": modelDelay, "since": modelMaxOpen,
}

// ignored are fields on which no decision depends in the model: since when a hostname has a
// reason, and the changes of a namespace within five minutes, of which it has few.
var ignored = map[string]bool{"Message": true, "message": true, "reasons": true, "changes": true}

// special adds values with a canonical form of their own.
func (h *modelHasher) special(to *exploration.Hasher, v reflect.Value, field string) bool {
	switch v.Type() {
	case durationType: // an uptime; 0 is never
		switch {
		case spans[field]:
			to.Int(int(v.Int()))
		case v.Int() == 0:
			to.Add(0)
		default:
			h.at(to, time.Duration(v.Int()), field)
		}
	case timeType: // the Gateways' ages do not change
	case errorType:
		if to.Bools(v.IsNil()); !v.IsNil() {
			to.String(v.Elem().Type().String())
		}
	default:
		return ignored[field] || h.named(to, v)
	}
	return true
}

// named adds an ID or an AUD tag. IDs that only the Memory knows are not numbered, because
// the order of a map is random.
func (h *modelHasher) named(to *exploration.Hasher, v reflect.Value) bool {
	if v.Kind() != reflect.String || !strings.HasPrefix(v.String(), "app-") && !strings.HasPrefix(v.String(), "aud-") {
		return false
	}
	n, known := h.ids[v.String()]
	if known {
		to.Add(n)
	}
	return known
}

// at adds an uptime in the field relative to now.
func (h *modelHasher) at(to *exploration.Hasher, uptime time.Duration, field string) {
	limit, known := maxAges[field]
	if !known {
		limit = modelFar
	}
	to.Int(int(max(uptime-h.now, -limit)))
}
