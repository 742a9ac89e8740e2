package controller

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// responseWait is how long an event waits for the response to this process's write of the same
// status, which can arrive later than the event.
const responseWait = 50 * time.Millisecond

// ownWrites remembers the statuses that this process has written until their events arrive. Such
// an event requires no reconcile of the key that wrote the status: the reconcile that wrote it knows
// it. A later reconcile of the key may have read an older status, so that the event requires another.
type ownWrites struct {
	mu      sync.Mutex
	written map[typedName]*ownWrite
}

// typedName identifies an object by its Go type and name.
type typedName struct {
	kind string
	types.NamespacedName
}

// maxWrites limits the writes of one object that are remembered.
const maxWrites = 8

// ownWrite has the writes of an object's status whose events have not arrived.
type ownWrite struct {
	writes []statusWrite // the oldest first
	// running counts the requests without a response, and responded is closed when there is
	// none.
	running   int
	responded chan struct{}
}

// statusWrite is a write in a reconcile of a key.
type statusWrite struct {
	key           state.Key
	before, after string // resource versions
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
	key, known := ctx.Value(writingKey{}).(state.Key)
	if !known || !hasOwnWriteFilter(o) {
		return s.SubResourceWriter.Update(ctx, o, opts...)
	}
	name, write := typedNameOf(o), statusWrite{key: key, before: o.GetResourceVersion()}
	s.writes.begin(name)
	defer func() { s.writes.end(name, write) }() // also after a panic
	err := s.SubResourceWriter.Update(ctx, o, opts...)
	if err == nil {
		write.after = o.GetResourceVersion()
	}
	return err
}

// writingKey is the key of the context value with the [state.Key] that is reconciled.
type writingKey struct{}

// reconciling returns a context for the writes in a reconcile of the key that begins now. Writes
// for a ListenerSet without a Gateway are not remembered.
func (w *ownWrites) reconciling(ctx context.Context, key state.Key) context.Context {
	if w == nil || key.Kind != gateway.KindGateway {
		return ctx
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, one := range w.written {
		w.keep(name, slices.DeleteFunc(one.writes, func(write statusWrite) bool { return write.key == key }))
	}
	return context.WithValue(ctx, writingKey{}, key)
}

// hasOwnWriteFilter reports whether the watch of the object's kind has an [ownWriteFilter].
func hasOwnWriteFilter(o client.Object) bool {
	switch o.(type) {
	case *gatewayv1.HTTPRoute, *gatewayv1.GRPCRoute, *v1alpha1.Tunnel:
		return true
	}
	return false
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

// end ends a write, which has failed if it has no version after it.
func (w *ownWrites) end(o typedName, write statusWrite) {
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.written[o]
	if write.after != "" {
		one.writes = append(one.writes[max(0, len(one.writes)-maxWrites+1):], write)
	}
	if one.running--; one.running == 0 {
		close(one.responded)
	}
	w.keep(o, one.writes)
}

// keep replaces what is remembered about an object. The caller holds the mutex.
func (w *ownWrites) keep(o typedName, writes []statusWrite) {
	one := w.written[o]
	if one.writes = writes; len(writes) == 0 && one.running == 0 {
		delete(w.written, o)
	}
}

// takes returns the key whose writes are the whole difference between two versions of an object,
// and forgets these writes and older ones. It returns false if there is none.
func (w *ownWrites) takes(before, after client.Object) (writer state.Key, isOwn bool) {
	name := typedNameOf(after)
	w.waitForResponse(name, after.GetResourceVersion())
	w.mu.Lock()
	defer w.mu.Unlock()
	one := w.written[name]
	if one == nil {
		return writer, false
	}
	i := indexAfter(one.writes, after.GetResourceVersion())
	if i < 0 {
		return writer, false
	}
	taken := one.writes[:i+1]
	w.keep(name, slices.Clone(one.writes[i+1:]))
	return writerSince(before.GetResourceVersion(), taken)
}

// indexAfter returns the index of the write after which the object has the version, or -1.
func indexAfter(writes []statusWrite, version string) int {
	return slices.IndexFunc(writes, func(write statusWrite) bool { return write.after == version })
}

// writerSince returns the key of all writes since the version, if nothing else has changed.
func writerSince(version string, writes []statusWrite) (key state.Key, isOnly bool) {
	first := slices.IndexFunc(writes, func(write statusWrite) bool { return write.before == version })
	if first < 0 {
		return key, false
	}
	key = writes[first].key
	for _, write := range writes[first:] {
		if write.key != key || write.before != version {
			return key, false
		}
		version = write.after
	}
	return key, true
}

// waitForResponse waits until the writes of the object that run now have a response, at most
// responseWait.
func (w *ownWrites) waitForResponse(o typedName, version string) {
	w.mu.Lock()
	var responded chan struct{}
	if one := w.written[o]; one != nil && one.running > 0 && indexAfter(one.writes, version) < 0 {
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
	if name := typedNameOf(o); w.written[name] != nil {
		w.keep(name, nil)
	}
}

// ownWriteFilter drops the updates that consist of statuses that reconciles of one key wrote,
// unless they affect other keys.
type ownWriteFilter struct {
	own *ownWrites
	// keys returns the keys that the object affects.
	keys mapFunc[client.Object]
	// needed reports whether other Gateways can depend on the update. It may be nil.
	needed func(before, after client.Object) bool
}

// predicate returns the filter, or nil if nothing remembers writes.
func (f ownWriteFilter) predicate() predicate.Predicate {
	if f.own == nil {
		return nil
	}
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return f.passes(e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			f.own.forget(e.Object)
			return true
		},
	}
}

func (f ownWriteFilter) passes(before, after client.Object) bool {
	writer, isOwn := f.own.takes(before, after)
	if !isOwn || f.needed != nil && f.needed(before, after) {
		return true
	}
	var keys []state.Key
	ctx := context.Background()
	// The informer does not recover from a panic.
	err := recovery.Call(ctx, func() error {
		old, errOld := f.keys(ctx, before)
		current, err := f.keys(ctx, after)
		keys = append(old, current...)
		return errors.Join(errOld, err)
	})
	return err != nil || slices.ContainsFunc(keys, func(key state.Key) bool { return key != writer })
}
