package dns

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/exploration"
)

// modelHasher computes a state's canonical form.
type modelHasher struct {
	exploration.Hasher
	w   *modelWorld
	now time.Duration // of the process whose Memory is hashed
	ids map[provider.RecordID]uint64
}

// modelFar is the age above which the exact age makes no difference.
const modelFar = modelAdoptionAge + 5*time.Minute

// id adds a record's ID. IDs are numbered in the order of the database.
func (h *modelHasher) id(id provider.RecordID) {
	n, known := h.ids[id]
	if !known {
		n = uint64(len(h.ids)) + 1
		h.ids[id] = n
	}
	h.Add(n)
}

// key returns the world's canonical form: two worlds with the same key behave the same.
func (w *modelWorld) key() [2]uint64 {
	h := modelHasher{w: w, ids: map[provider.RecordID]uint64{}}
	h.Int(w.zone.quota)
	h.Bools(w.quiet())
	h.String(w.zone.account)
	h.String(w.zone.status)
	for _, r := range w.zone.records {
		h.id(r.ID)
		h.record(r)
	}
	for _, n := range w.zone.notices {
		h.id(n.id)
		h.When(n.due, w.now, modelFar)
		for _, r := range []*provider.Record{n.before, n.after} {
			if h.Bools(r != nil); r != nil {
				h.record(*r)
			}
		}
	}
	for i := range w.count {
		h.install(&w.installs[i])
	}
	return h.Key()
}

func (h *modelHasher) record(r provider.Record) {
	h.String(r.Name)
	h.String(r.Type)
	h.String(r.Content)
	h.String(r.Comment)
	h.Bools(r.Proxied, r.TTL == provider.AutomaticTTL)
}

func (h *modelHasher) install(in *modelInstall) {
	now := h.w.now
	h.Bools(in.due, in.listed, in.revoked, in.noToken, in.noKey, in.permission, in.second, in.disagrees)
	h.Int(in.key<<16 | in.token<<8 | in.uid)
	h.String(string(in.mode))
	h.String(fmt.Sprint(in.exclude))
	h.When(in.wake, now, modelFar)
	h.Recent(in.boot, now, modelFar)
	for i := range in.gateways {
		h.gateway(&in.gateways[i])
	}
	for i := range in.names {
		n := &in.names[i]
		h.Recent(n.unwanted, now, modelDeletionDelay)
		for g := range n.left {
			h.Recent(n.left[g], now, modelDeletionDelay)
			h.String(n.namespace[g])
		}
	}
	for _, q := range in.requests {
		h.String(q.Name)
		h.String(q.Content)
		h.String(q.Type)
		h.id(provider.RecordID(q.ID))
		h.Int(int(min(now-q.Requested.Sub(modelEpoch), modelFar)))
	}
	for _, l := range in.late {
		h.When(l.until, now, modelFar)
		h.String(fmt.Sprintf("%d %d %d", len(l.batch.Deletes), len(l.batch.Patches), len(l.batch.Puts)))
		for _, id := range l.batch.Deletes {
			h.id(id)
		}
		for _, p := range l.batch.Patches {
			h.id(p.ID)
			h.Value(reflect.ValueOf(p), "", h.special)
		}
		for _, c := range l.batch.Creates {
			h.String(c.Name)
			h.String(c.Target)
		}
	}
	h.Bools(in.seen.any, now-in.seen.at <= modelReadAge)
	for _, r := range slices.Concat(in.seen.records, in.seen.known) {
		h.id(r.ID)
		h.record(r)
	}
	h.now = h.w.uptime(in.index)
	h.Value(reflect.ValueOf(in.memory), "", h.special)
}

func (h *modelHasher) gateway(g *modelGateway) {
	h.Bools(g.exists, g.tunnel, g.known, g.paused, g.blocked, g.rejected, g.retained, g.offline)
	h.Int(g.class<<8 | g.tunnels)
	if !g.exists && g.tunnel {
		h.Recent(g.gone, h.w.now, modelDeletionDelay)
	}
	h.String(g.namespace)
	for _, n := range g.hostnames {
		h.String(n.Name)
		h.String(n.Namespace)
		h.Bools(n.Served, n.Permitted)
	}
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	recordIDType = reflect.TypeFor[provider.RecordID]()
	instantType  = reflect.TypeFor[Instant]()
	timeType     = reflect.TypeFor[time.Time]()
	errorType    = reflect.TypeFor[error]()
)

// memoryKey returns the Memory's canonical form.
func (w *modelWorld) memoryKey(i int, m Memory) [2]uint64 {
	h := modelHasher{w: w, ids: map[provider.RecordID]uint64{}, now: w.uptime(i)}
	h.Value(reflect.ValueOf(m), "", h.special)
	return h.Key()
}

// maxAges contains, for Instants in the Memory by field name, the age above which the exact
// age makes no difference. The others have [modelFar].
var maxAges = map[string]time.Duration{
	"since": modelPropagation, "changed": 2 * modelPropagation, "namesRead": 2 * modelPropagation, "unanswered": 0, "until": 0, "retry": 0, "next": 0,
	"unheld": modelDeletionDelay, "unwanted": modelDeletionDelay,
}

// special adds a part of the Memory that has a canonical form of its own.
func (h *modelHasher) special(to *exploration.Hasher, v reflect.Value, field string) bool {
	switch v.Type() {
	case instantType:
		set := v.FieldByName("set").Bool()
		if to.Bools(set); set {
			h.at(to, time.Duration(v.FieldByName("at").Int()), field)
		}
	case durationType: // an uptime; 0 is never
		if to.Bools(v.Int() != 0); v.Int() != 0 {
			h.at(to, time.Duration(v.Int()), field)
		}
	case recordIDType:
		h.id(provider.RecordID(v.String()))
	case timeType: // the model's records have none
	case errorType:
		if to.Bools(v.IsNil()); !v.IsNil() {
			to.String(v.Elem().Type().String())
		}
	default:
		return false
	}
	return true
}

// at adds an uptime in the field relative to now.
func (h *modelHasher) at(to *exploration.Hasher, uptime time.Duration, field string) {
	limit, known := maxAges[field]
	if !known {
		limit = modelFar
	}
	to.Int(int(max(uptime-h.now, -limit)))
}
