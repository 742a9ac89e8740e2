// Package byname provides a map by object name. A changed copy shares most memory with the original, so that
// it takes little time to change a large cluster's snapshot and to compare two snapshots.
package byname

import (
	"hash/maphash"
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// parts is how many parts a Map has. A change copies one part.
const parts = 128

// Map has values by object name. The zero value is an empty map. Assignment copies a Map: changes to
// one copy do not affect others. Several goroutines can read it at the same time.
type Map[V any] struct {
	// all has the parts by the name's hash. Neither it nor a part ever changes. It is nil in the zero
	// value, and a part without values can be nil.
	all *[parts]*part[V]
}

type part[V any] struct{ values map[types.NamespacedName]V }

// part returns the values in a part, for reading.
func (m Map[V]) part(i int) map[types.NamespacedName]V {
	if m.all == nil || m.all[i] == nil {
		return nil
	}
	return m.all[i].values
}

// From returns a Map with the values in m.
func From[V any](m map[types.NamespacedName]V) Map[V] {
	all := new([parts]*part[V])
	for name, value := range m {
		i := partOf(name)
		if all[i] == nil {
			all[i] = &part[V]{map[types.NamespacedName]V{}}
		}
		all[i].values[name] = value
	}
	return Map[V]{all}
}

var seed = maphash.MakeSeed()

// partOf returns the part's index for the name.
func partOf(name types.NamespacedName) int { return int(maphash.Comparable(seed, name) % parts) }

// Get returns the value, and whether there is one.
func (m Map[V]) Get(name types.NamespacedName) (value V, ok bool) {
	value, ok = m.part(partOf(name))[name]
	return value, ok
}

// Value returns the value, or the zero value if there is none.
func (m Map[V]) Value(name types.NamespacedName) V {
	value, _ := m.Get(name)
	return value
}

// Len counts the values.
func (m Map[V]) Len() int {
	n := 0
	for i := range parts {
		n += len(m.part(i))
	}
	return n
}

// All iterates over the names and values, in any order.
func (m Map[V]) All() iter.Seq2[types.NamespacedName, V] {
	return func(yield func(types.NamespacedName, V) bool) {
		for i := range parts {
			for name, value := range m.part(i) {
				if !yield(name, value) {
					return
				}
			}
		}
	}
}

// Set adds or replaces a value.
func (m *Map[V]) Set(name types.NamespacedName, value V) { m.own(name)[name] = value }

// Delete removes the value, if there is one.
func (m *Map[V]) Delete(name types.NamespacedName) {
	if _, ok := m.Get(name); ok {
		delete(m.own(name), name)
	}
}

// own replaces the part for the name by a copy, and returns the values in it.
func (m *Map[V]) own(name types.NamespacedName) map[types.NamespacedName]V {
	next, i := new([parts]*part[V]), partOf(name)
	if m.all != nil {
		*next = *m.all
	}
	values := maps.Clone(m.part(i))
	if values == nil {
		values = map[types.NamespacedName]V{}
	}
	next[i] = &part[V]{values}
	m.all = next
	return values
}

// Differing iterates over the names whose values differ or that only one of the maps has, in any
// order. It reads only the parts that the maps do not share.
func Differing[V any](a, b Map[V], isSame func(a, b V) bool) iter.Seq[types.NamespacedName] {
	return func(yield func(types.NamespacedName) bool) {
		if a.all == b.all {
			return
		}
		for i := range parts {
			if a.all != nil && b.all != nil && a.all[i] == b.all[i] {
				continue // most parts after a change
			}
			for name := range differing(a.part(i), b.part(i), isSame) {
				if !yield(name) {
					return
				}
			}
		}
	}
}

func differing[V any](a, b map[types.NamespacedName]V, isSame func(a, b V) bool) iter.Seq[types.NamespacedName] {
	return func(yield func(types.NamespacedName) bool) {
		for name, value := range b {
			if before, ok := a[name]; (!ok || !isSame(before, value)) && !yield(name) {
				return
			}
		}
		for name := range a {
			if _, ok := b[name]; !ok && !yield(name) {
				return
			}
		}
	}
}
