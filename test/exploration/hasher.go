package exploration

import (
	"reflect"
	"slices"
	"sync"
	"time"
)

// Hasher computes a state's canonical form with 128 bits. Its zero value has added nothing.
type Hasher struct{ a, b uint64 }

// Key returns the form of everything that was added.
func (h *Hasher) Key() [2]uint64 { return [2]uint64{h.a, h.b} }

// Add adds a number.
func (h *Hasher) Add(x uint64) {
	h.a = (h.a ^ x) * 0x9e3779b97f4a7c15
	h.a ^= h.a >> 32
	h.b = (h.b + x) * 0xd6e8feb86659fd93
	h.b ^= h.b >> 29
}

// Int adds a number.
func (h *Hasher) Int(x int) { h.Add(uint64(x)) } // #nosec G115 -- any mapping is valid

// Bools adds at most 63 flags.
func (h *Hasher) Bools(list ...bool) {
	x := uint64(1)
	for _, b := range list {
		x <<= 1
		if b {
			x |= 1
		}
	}
	h.Add(x)
}

// String adds a string.
func (h *Hasher) String(s string) { h.Add(hashString(s)) }

func hashString(s string) uint64 {
	sum := uint64(14695981039346656037)
	for i := range len(s) {
		sum = (sum ^ uint64(s[i])) * 1099511628211
	}
	return sum
}

// When adds a time relative to now. 0 means never. A distance above the limit makes no
// difference.
func (h *Hasher) When(t, now, limit time.Duration) {
	if t == 0 {
		h.Add(0)
		return
	}
	h.Int(1 + int(min(max((t-now).Round(time.Second), -limit), limit)))
}

// Recent adds a past time. 0 means never. An age above the limit makes no difference.
func (h *Hasher) Recent(t, now, limit time.Duration) {
	if t == 0 {
		h.Add(0)
		return
	}
	h.Int(1 + int(min(now-t, limit)))
}

// Special adds a value that has a canonical form of its own, for example a time, and returns
// false for another value. field is the name of the field that contains the value; it can
// be empty.
type Special func(to *Hasher, v reflect.Value, field string) bool

// Value adds a value of any type, with its unexported fields.
func (h *Hasher) Value(v reflect.Value, field string, special Special) {
	if special(h, v, field) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i, name := range fieldNames(v.Type()) {
			h.Value(v.Field(i), name, special)
		}
	case reflect.Slice, reflect.Array:
		h.Int(v.Len())
		for i := range v.Len() {
			h.Value(v.Index(i), field, special)
		}
	case reflect.Map:
		h.mapping(v, special)
	case reflect.Pointer, reflect.Interface:
		if h.Bools(v.IsNil()); !v.IsNil() {
			h.Value(v.Elem(), field, special)
		}
	default:
		h.scalar(v)
	}
}

// knownNames caches [fieldNames], because finding them costs time.
var knownNames sync.Map

// fieldNames returns a struct's field names.
func fieldNames(t reflect.Type) []string {
	if names, ok := knownNames.Load(t); ok {
		return names.([]string)
	}
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Name
	}
	knownNames.Store(t, names)
	return names
}

// scalar adds a value that contains no other values.
func (h *Hasher) scalar(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		h.String(v.String())
	case reflect.Bool:
		h.Bools(v.Bool())
	case reflect.Int, reflect.Int32, reflect.Int64:
		h.Add(uint64(v.Int())) // #nosec G115 -- any mapping is valid
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		h.Add(v.Uint())
	default:
		panic("no canonical form for " + v.Type().String())
	}
}

// mapping adds a map, in the order of the canonical forms of its keys.
func (h *Hasher) mapping(v reflect.Value, special Special) {
	h.Int(v.Len())
	type entry struct {
		key   [2]uint64
		value reflect.Value
	}
	entries := make([]entry, 0, v.Len())
	for iterator := v.MapRange(); iterator.Next(); {
		var key Hasher
		key.Value(iterator.Key(), "", special)
		entries = append(entries, entry{key.Key(), iterator.Value()})
	}
	slices.SortFunc(entries, func(x, y entry) int { return slices.Compare(x.key[:], y.key[:]) })
	for _, e := range entries {
		h.Add(e.key[0])
		h.Value(e.value, "", special)
	}
}
