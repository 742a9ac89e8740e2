// Package mirror follows the objects that were read from a cluster, so that they can be read
// again from memory.
package mirror

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Mirror is a client.Reader. The first List of a kind in a namespace, or in all, lists the
// objects at the API server and begins to watch them; the next ones read from memory. A Get is
// remembered, and repeated from time to time. The objects are shared: callers must not modify
// them.
type Mirror struct {
	live client.WithWatch
	// follow runs a follower until the Mirror ends or the follower's stop is called.
	follow  func(*follower)
	changed chan struct{}

	mu        sync.Mutex
	followers map[selection]*follower
	gets      map[selection]*remembered
	lost      error
}

// selection is what a request reads: an object or, without a name, the objects of a namespace,
// or of all.
type selection struct {
	as   reflect.Type // the whole objects of a kind, or only their metadata
	kind schema.GroupVersionKind
	types.NamespacedName
}

// Start returns a Mirror of the cluster that live is connected to. It ends with ctx.
func Start(ctx context.Context, live client.WithWatch) *Mirror {
	m := &Mirror{
		live: live, changed: make(chan struct{}, 1),
		followers: map[selection]*follower{}, gets: map[selection]*remembered{},
	}
	m.follow = func(f *follower) {
		var following context.Context
		following, f.stop = context.WithCancel(quiet(ctx))
		go f.run(following)
	}
	go m.beat(ctx)
	return m
}

// Changed receives a value after objects have changed since the last value, or after the
// connection was lost or is back.
func (m *Mirror) Changed() <-chan struct{} { return m.changed }

// Lost returns why the API server cannot be reached; nil if it can.
func (m *Mirror) Lost() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// List implements client.Reader. Options other than a namespace make a request of their own,
// except for limit and continue, which have no effect.
func (m *Mirror) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.LabelSelector != nil || o.FieldSelector != nil {
		return m.live.List(ctx, list, opts...)
	}
	s, err := m.selection(list, types.NamespacedName{Namespace: o.Namespace})
	if err != nil {
		return err
	}
	objects, err := m.objects(ctx, s, list)
	if err != nil {
		return err
	}
	list.SetContinue("")
	return meta.SetList(list, objects)
}

// objects returns the selected objects, after the first list of them.
func (m *Mirror) objects(ctx context.Context, s selection, list client.ObjectList) ([]runtime.Object, error) {
	for {
		f := m.follower(s, list)
		select {
		case <-f.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		switch {
		case f.err == nil:
			return f.objects(), nil
		case isRefusal(f.err):
			return nil, f.err
		}
		m.forget(s, f)
		if !errors.Is(f.err, context.Canceled) { // by a reset
			return nil, f.err
		}
	}
}

// isRefusal reports whether an error is an answer that the next request would get too.
func isRefusal(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// follower returns the follower of the selected objects. It starts the first one.
func (m *Mirror) follower(s selection, list client.ObjectList) *follower {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.followers[s]; f != nil {
		f.used = time.Now()
		return f
	}
	f := newFollower(m.live, list, s.Namespace)
	f.notify, f.ended = m.notify, func() { m.end(s, f) }
	m.followers[s] = f
	m.follow(f)
	return f
}

func (m *Mirror) selection(o runtime.Object, name types.NamespacedName) (selection, error) {
	kind, err := m.live.GroupVersionKindFor(o)
	if err != nil {
		return selection{}, fmt.Errorf("mirror %T: %w", o, err)
	}
	return selection{reflect.TypeOf(o), kind, name}, nil
}

// end removes a follower whose objects can no longer be listed, so that the next List reports
// why.
func (m *Mirror) end(s selection, f *follower) {
	m.forget(s, f)
	f.stop()
	m.notify()
}

func (m *Mirror) forget(s selection, f *follower) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.followers[s] == f {
		delete(m.followers, s)
	}
}

// notify sends to Changed unless a value is waiting there.
func (m *Mirror) notify() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// reset forgets everything, so that the next reads make requests.
func (m *Mirror) reset() {
	m.mu.Lock()
	for _, f := range m.followers {
		f.stop()
	}
	m.followers, m.gets = map[selection]*follower{}, map[selection]*remembered{}
	m.mu.Unlock()
	m.notify()
}
