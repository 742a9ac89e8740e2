package mirror

import (
	"context"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// maxRepeated is how many of the remembered objects are read again in one beat. All of
	// 10,000 Secrets take 17 minutes.
	maxRepeated = 30
	// maxUnused is how long an object is remembered after the last Get. An object that the user
	// may not get is not read again before that time, because there can be thousands.
	maxUnused = 30 * time.Minute
)

// remembered is the result of a Get: an object, or a refusal.
type remembered struct {
	object client.Object
	err    error
	// read is when the request was made, and used when a caller last got the result.
	read, used time.Time
}

// Get implements client.Reader.
func (m *Mirror) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	s, err := m.selection(object, key)
	if err != nil {
		return err
	}
	if known, ok := m.recall(s); ok {
		if known.err == nil {
			reflect.ValueOf(object).Elem().Set(reflect.ValueOf(known.object).Elem())
		}
		return known.err
	}
	err = m.live.Get(ctx, key, object, opts...)
	if err == nil || isRefusal(err) {
		m.remember(s, object.DeepCopyObject().(client.Object), err)
	}
	return err
}

func (m *Mirror) recall(s selection) (remembered, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.gets[s]
	if known == nil {
		return remembered{}, false
	}
	known.used = time.Now()
	return *known, true
}

func (m *Mirror) remember(s selection, object client.Object, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		object.SetManagedFields(nil)
	}
	now := time.Now()
	m.gets[s] = &remembered{object: object, err: err, read: now, used: now}
}

// repeatGets reads some of the remembered objects again.
func (m *Mirror) repeatGets(ctx context.Context) {
	changed := false
	for s, example := range m.toRepeat() {
		now := reflect.New(reflect.TypeOf(example).Elem()).Interface().(client.Object)
		now.GetObjectKind().SetGroupVersionKind(s.kind)
		err := m.getNow(ctx, s.NamespacedName, now)
		if err != nil && !isRefusal(err) {
			break // until the next beat
		}
		changed = m.compare(s, now, err) || changed
	}
	if changed {
		m.notify()
	}
}

// getNow makes a request, which cannot delay the check of the connection for long.
func (m *Mirror) getNow(ctx context.Context, name client.ObjectKey, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return m.live.Get(ctx, name, object)
}

// compare forgets a remembered object that has changed.
func (m *Mirror) compare(s selection, now client.Object, err error) (changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.gets[s]
	if known == nil {
		return false
	}
	known.read = time.Now()
	if (err == nil) == (known.err == nil) && now.GetUID() == known.object.GetUID() && now.GetResourceVersion() == known.object.GetResourceVersion() {
		return false
	}
	delete(m.gets, s)
	return true
}

// toRepeat returns which objects to read again now: among existing and among missing objects,
// the ones read longest ago. It forgets unused ones.
func (m *Mirror) toRepeat() map[selection]client.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	var existing, missing []selection
	for s, known := range m.gets {
		switch {
		case time.Since(known.used) > maxUnused, apierrors.IsForbidden(known.err) && time.Since(known.read) > maxUnused:
			delete(m.gets, s)
		case known.err == nil:
			existing = append(existing, s)
		case apierrors.IsNotFound(known.err):
			missing = append(missing, s)
		}
	}
	chosen := map[selection]client.Object{}
	for _, group := range [][]selection{existing, missing} {
		slices.SortFunc(group, func(a, b selection) int { return m.gets[a].read.Compare(m.gets[b].read) })
		for _, s := range group[:min(len(group), maxRepeated)] {
			chosen[s] = m.gets[s].object
		}
	}
	return chosen
}
