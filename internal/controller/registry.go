package controller

import (
	"context"
	"reflect"
	"slices"
	"sync"
)

// registered is what the process remembers about a zone or an account. [registry.mu] guards
// classes and report.
type registered[S, R, M, A any] struct {
	// classes are the GatewayClasses of the zone or the account. The oldest comes first.
	// There are none if the controller reads and changes nothing in it.
	classes []classWith[S]
	report  R
	// Only the worker that processes the zone or the account uses these fields.
	memory M
	api    *openedAPI[A]
}

// registry contains the zones or the accounts that the settings of GatewayClasses name, and
// what the process remembers about them.
type registry[K comparable, S, R, M, A any] struct {
	classes *classSettings[S]

	mu    sync.Mutex
	byKey map[K]*registered[S, R, M, A]
}

// refreshWith reads the GatewayClasses, and records them by key, as list returns them. It
// returns the keys whose settings have changed.
func (r *registry[K, S, R, M, A]) refreshWith(ctx context.Context, list func([]classWith[S]) map[K][]classWith[S]) (changed []K, err error) {
	err = r.classes.refresh(ctx, func(classes []classWith[S]) { changed = r.replace(list(classes)) })
	return changed, err
}

// replace records the classes of each key, and returns the keys whose settings have changed.
// A key that is no longer listed remains until it is forgotten.
func (r *registry[K, S, R, M, A]) replace(listed map[K][]classWith[S]) (changed []K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, all := range listed {
		if r.byKey[key] == nil {
			r.byKey[key] = &registered[S, R, M, A]{}
		}
		if !reflect.DeepEqual(r.byKey[key].classes, all) {
			r.byKey[key].classes = all
			changed = append(changed, key)
		}
	}
	for key, entry := range r.byKey {
		if len(listed[key]) == 0 && entry.classes != nil {
			entry.classes = nil
			changed = append(changed, key)
		}
	}
	return changed
}

// of returns what is registered for the key, and its classes. It returns nil if the key is
// not listed.
func (r *registry[K, S, R, M, A]) of(key K) (*registered[S, R, M, A], []classWith[S]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.byKey[key]
	if entry == nil || len(entry.classes) == 0 {
		return nil, nil
	}
	return entry, entry.classes
}

// using returns the keys for which a GatewayClass matches.
func (r *registry[K, S, R, M, A]) using(matches func(classWith[S]) bool) []K {
	return r.keys(func(_ K, entry *registered[S, R, M, A]) bool { return slices.ContainsFunc(entry.classes, matches) })
}

// keys returns the listed keys that match.
func (r *registry[K, S, R, M, A]) keys(matches func(K, *registered[S, R, M, A]) bool) (found []K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, entry := range r.byKey {
		if len(entry.classes) > 0 && matches(key, entry) {
			found = append(found, key)
		}
	}
	return found
}

// record records a report, and returns the one before.
func (r *registry[K, S, R, M, A]) record(entry *registered[S, R, M, A], report R) (before R) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, entry.report = entry.report, report
	return before
}

// lastReport returns the last report on a zone or an account.
func (r *registry[K, S, R, M, A]) lastReport(key K) (report R) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry := r.byKey[key]; entry != nil {
		report = entry.report
	}
	return report
}

// forget forgets a key that is not listed. It returns the last report, and false if the key
// is listed or not registered.
func (r *registry[K, S, R, M, A]) forget(key K) (before R, forgotten bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := r.byKey[key]
	if entry == nil || len(entry.classes) > 0 {
		return before, false
	}
	delete(r.byKey, key)
	return entry.report, true
}
