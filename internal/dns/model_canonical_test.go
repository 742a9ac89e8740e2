package dns

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// modelHasher computes a key with 128 bits.
type modelHasher struct {
	a, b uint64
	w    *modelWorld
	now  time.Duration // of the process whose Memory is hashed
	ids  map[provider.RecordID]uint64
}

func (h *modelHasher) add(x uint64) {
	h.a = (h.a ^ x) * 0x9e3779b97f4a7c15
	h.a ^= h.a >> 32
	h.b = (h.b + x) * 0xd6e8feb86659fd93
	h.b ^= h.b >> 29
}

func (h *modelHasher) int(x int) { h.add(uint64(x)) } // #nosec G115 -- any mapping is valid

func (h *modelHasher) bools(list ...bool) {
	x := uint64(1)
	for _, b := range list {
		x <<= 1
		if b {
			x |= 1
		}
	}
	h.add(x)
}

func (h *modelHasher) string(s string) { h.add(hashString(s)) }

func hashString(s string) uint64 {
	sum := uint64(14695981039346656037)
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * 1099511628211
	}
	return sum
}

// modelFar is the age above which the exact age makes no difference.
const modelFar = modelAdoptionAge + 5*time.Minute

// when adds a point in time relative to now. 0 means never.
func (h *modelHasher) when(t, now time.Duration) {
	if t == 0 {
		h.add(0)
		return
	}
	h.int(1 + int(min(max((t-now).Round(time.Second), -modelFar), modelFar)))
}

// recent adds a point in time whose age makes no difference above the limit.
func (h *modelHasher) recent(t, now, limit time.Duration) {
	if t == 0 {
		h.add(0)
		return
	}
	h.int(1 + int(min(now-t, limit)))
}

// id adds a record's ID. IDs are numbered in the order of the database.
func (h *modelHasher) id(id provider.RecordID) {
	n, known := h.ids[id]
	if !known {
		n = uint64(len(h.ids)) + 1
		h.ids[id] = n
	}
	h.add(n)
}

// key returns the world's canonical form: two worlds with the same key behave the same.
func (w *modelWorld) key() [2]uint64 {
	h := modelHasher{w: w, ids: map[provider.RecordID]uint64{}}
	h.int(w.zone.quota)
	h.bools(w.quiet())
	h.string(w.zone.account)
	h.string(w.zone.status)
	for _, r := range w.zone.records {
		h.id(r.ID)
		h.record(r)
	}
	for _, n := range w.zone.notices {
		h.id(n.id)
		h.when(n.due, w.now)
		for _, r := range []*provider.Record{n.before, n.after} {
			if h.bools(r != nil); r != nil {
				h.record(*r)
			}
		}
	}
	for i := range w.count {
		h.install(&w.installs[i])
	}
	return [2]uint64{h.a, h.b}
}

func (h *modelHasher) record(r provider.Record) {
	h.string(r.Name)
	h.string(r.Type)
	h.string(r.Content)
	h.string(r.Comment)
	h.bools(r.Proxied, r.TTL == provider.AutomaticTTL)
}

func (h *modelHasher) install(in *modelInstall) {
	now := h.w.now
	h.bools(in.due, in.listed, in.revoked, in.noToken, in.noKey, in.permission, in.second, in.disagrees)
	h.int(in.key<<16 | in.token<<8 | in.uid)
	h.string(string(in.mode))
	h.string(fmt.Sprint(in.exclude))
	h.when(in.wake, now)
	h.recent(in.boot, now, modelFar)
	for i := range in.gateways {
		h.gateway(&in.gateways[i])
	}
	for i := range in.names {
		n := &in.names[i]
		h.recent(n.unwanted, now, modelDeletionDelay)
		for g := range n.left {
			h.recent(n.left[g], now, modelDeletionDelay)
			h.string(n.namespace[g])
		}
	}
	for _, q := range in.requests {
		h.string(q.Name)
		h.string(q.Content)
		h.string(q.Type)
		h.id(provider.RecordID(q.ID))
		h.int(int(min(now-q.Requested.Sub(modelEpoch), modelFar)))
	}
	for _, l := range in.late {
		h.when(l.until, now)
		h.string(fmt.Sprintf("%d %d %d", len(l.batch.Deletes), len(l.batch.Patches), len(l.batch.Puts)))
		for _, id := range l.batch.Deletes {
			h.id(id)
		}
		for _, p := range l.batch.Patches {
			h.id(p.ID)
			h.value(reflect.ValueOf(p), "")
		}
		for _, c := range l.batch.Creates {
			h.string(c.Name)
			h.string(c.Target)
		}
	}
	h.bools(in.seen.any, now-in.seen.at <= modelReadAge)
	for _, r := range slices.Concat(in.seen.records, in.seen.known) {
		h.id(r.ID)
		h.record(r)
	}
	h.now = h.w.uptime(in.index)
	h.value(reflect.ValueOf(in.memory), "")
}

func (h *modelHasher) gateway(g *modelGateway) {
	h.bools(g.exists, g.tunnel, g.known, g.paused, g.blocked, g.rejected, g.retained, g.offline)
	h.int(g.class<<8 | g.tunnels)
	if !g.exists && g.tunnel {
		h.recent(g.gone, h.w.now, modelDeletionDelay)
	}
	h.string(g.namespace)
	for _, n := range g.hostnames {
		h.string(n.Name)
		h.string(n.Namespace)
		h.bools(n.Served, n.Permitted)
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
	h.value(reflect.ValueOf(m), "")
	return [2]uint64{h.a, h.b}
}

// maxAges contains, for Instants in the Memory by field name, the age above which the exact
// age makes no difference. The others have [modelFar].
var maxAges = map[string]time.Duration{
	"since": modelPropagation, "changed": 2 * modelPropagation, "namesRead": 2 * modelPropagation, "unanswered": 0, "until": 0, "retry": 0, "next": 0,
	"unheld": modelDeletionDelay, "unwanted": modelDeletionDelay,
}

// value adds a part of the Memory, which is in the field.
func (h *modelHasher) value(v reflect.Value, field string) {
	switch v.Type() {
	case instantType:
		h.instant(v, field)
	case durationType: // an uptime; 0 is never
		if h.bools(v.Int() != 0); v.Int() != 0 {
			h.at(time.Duration(v.Int()), field)
		}
	case recordIDType:
		h.id(provider.RecordID(v.String()))
	case timeType: // the model's records have none
	case errorType:
		if h.bools(v.IsNil()); !v.IsNil() {
			h.string(v.Elem().Type().String())
		}
	default:
		h.plain(v, field)
	}
}

// instant adds an Instant relative to now.
func (h *modelHasher) instant(v reflect.Value, field string) {
	set := v.FieldByName("set").Bool()
	if h.bools(set); !set {
		return
	}
	h.at(time.Duration(v.FieldByName("at").Int()), field)
}

// at adds an uptime in the field relative to now.
func (h *modelHasher) at(uptime time.Duration, field string) {
	limit, known := maxAges[field]
	if !known {
		limit = modelFar
	}
	h.int(int(max(uptime-h.now, -limit)))
}

// plain adds a value whose type has no canonical form of its own. Memory has only these
// kinds.
func (h *modelHasher) plain(v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			h.value(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		h.int(v.Len())
		for i := range v.Len() {
			h.value(v.Index(i), field)
		}
	case reflect.Map:
		h.mapping(v)
	case reflect.Pointer:
		if h.bools(v.IsNil()); !v.IsNil() {
			h.value(v.Elem(), field)
		}
	case reflect.String:
		h.string(v.String())
	case reflect.Bool:
		h.bools(v.Bool())
	case reflect.Int:
		h.int(int(v.Int()))
	default:
		panic("no canonical form for " + v.Type().String())
	}
}

// mapping adds a map with strings as keys.
func (h *modelHasher) mapping(v reflect.Value) {
	h.int(v.Len())
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		h.string(key.String())
		h.value(v.MapIndex(key), "")
	}
}
