package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// responseWait is how long an event waits for the response to this process's write of the same
// status, which can arrive later than the event.
const responseWait = 50 * time.Millisecond

// ownWrites remembers the statuses that this process has written until their events arrive,
// because such an event requires no reconcile: the reconcile that wrote the status knows it. An
// event whose write is not recognized causes a reconcile that changes nothing.
type ownWrites struct {
	mu      sync.Mutex
	written map[typedName]*ownWrite
}

// typedName identifies an object by its Go type and name.
type typedName struct {
	kind string
	types.NamespacedName
}

// maxVersions limits the writes of one object that are remembered.
const maxVersions = 8

// ownWrite has the writes of an object's status whose events have not arrived.
type ownWrite struct {
	versions []string // the resource versions after the writes, the oldest first
	// running counts the requests without a response, and responded is closed when there is
	// none.
	running   int
	responded chan struct{}
}

func newOwnWrites() *ownWrites { return &ownWrites{written: map[typedName]*ownWrite{}} }

func typedNameOf(o client.Object) typedName {
	return typedName{typeName(o), client.ObjectKeyFromObject(o)}
}

// client returns a client that remembers the statuses that it writes.
func (w *ownWrites) client(c client.Client) client.Client {
	if w == nil {
		return c
	}
	return ownWritesClient{c, w}
}

type ownWritesClient struct {
	client.Client
	writes *ownWrites
}

// Status implements client.Client.
func (c ownWritesClient) Status() client.SubResourceWriter {
	return ownStatusWriter{c.Client.Status(), c.writes}
}

type ownStatusWriter struct {
	client.SubResourceWriter
	writes *ownWrites
}

// Update implements client.SubResourceWriter.
func (s ownStatusWriter) Update(ctx context.Context, o client.Object, opts ...client.SubResourceUpdateOption) error {
	written := typedNameOf(o)
	s.writes.begin(written)
	err := s.SubResourceWriter.Update(ctx, o, opts...)
	version := o.GetResourceVersion()
	if err != nil {
		version = ""
	}
	s.writes.end(written, version)
	return err
}

func (w *ownWrites) begin(o typedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.written[o]
	if one == nil {
		one = &ownWrite{}
		w.written[o] = one
	}
	if one.running++; one.running == 1 {
		one.responded = make(chan struct{})
	}
}

func (w *ownWrites) end(o typedName, version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.written[o]
	if version != "" {
		one.versions = append(one.versions[max(0, len(one.versions)-maxVersions+1):], version)
	}
	if one.running--; one.running > 0 {
		return
	}
	if close(one.responded); len(one.versions) == 0 {
		delete(w.written, o)
	}
}

// takes reports whether this process wrote the object's version, and forgets it and older ones.
func (w *ownWrites) takes(o client.Object) bool {
	w.waitForResponse(typedNameOf(o), o.GetResourceVersion())
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.written[typedNameOf(o)]
	if one == nil {
		return false
	}
	i := slices.Index(one.versions, o.GetResourceVersion())
	if i < 0 {
		return false
	}
	if one.versions = slices.Clone(one.versions[i+1:]); len(one.versions) == 0 && one.running == 0 {
		delete(w.written, typedNameOf(o))
	}
	return true
}

// waitForResponse waits until the writes of the object that run now have a response, at most
// responseWait.
func (w *ownWrites) waitForResponse(o typedName, version string) {
	w.mu.Lock()
	var responded chan struct{}
	if one := w.written[o]; one != nil && one.running > 0 && !slices.Contains(one.versions, version) {
		responded = one.responded
	}
	w.mu.Unlock()
	if responded == nil {
		return
	}
	select {
	case <-responded:
	case <-time.After(responseWait):
	}
}

// forget forgets a deleted object.
func (w *ownWrites) forget(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.written[typedNameOf(o)]; one != nil && one.running == 0 {
		delete(w.written, typedNameOf(o))
	}
}

// withoutOwn returns a filter that drops the updates that consist of a status that this process
// wrote. needed reports whether other Gateways than the object's own depend on the update.
func (w *ownWrites) withoutOwn(needed func(before, after client.Object) bool) predicate.Predicate {
	if w == nil {
		return nil
	}
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			isOwn := w.takes(e.ObjectNew)
			return !isOwn || !differInStatus(e.ObjectOld, e.ObjectNew) || needed != nil && needed(e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			w.forget(e.Object)
			return true
		},
	}
}

// differInStatus reports whether two versions of an object differ at most in their status. After a
// gap in a watch, one event contains several changes.
func differInStatus(before, after client.Object) bool {
	return before.GetGeneration() == after.GetGeneration() &&
		maps.Equal(before.GetLabels(), after.GetLabels()) && maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
