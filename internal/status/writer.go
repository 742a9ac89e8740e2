package status

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
)

// At most 32 statuses are written concurrently: 24 for the first time, and 8 that could
// not be written before. So retries cannot delay first attempts.
const (
	firstAttempts = 24
	retryAttempts = 8
)

// A first attempt that takes longer counts as failed, so that it does not delay the
// Gateway's other statuses. A retry has more time, because an admission webhook may need
// it.
const (
	firstAttemptTimeout = 2 * time.Second
	retryAttemptTimeout = 10 * time.Second
)

// Writer updates the statuses of objects. It writes each status independently, and
// retries a status that cannot be written until it succeeds or the object is gone. Its
// methods are safe for concurrent use, but calls for the same owner must not overlap.
type Writer struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server. The Writer uses it to retry after a conflict.
	Live client.Reader
	// ControllerName is this controller's name in route statuses.
	ControllerName gatewayv1.GatewayController
	// Now returns the transition time for conditions.
	Now func() time.Time
	// Notify is called once for each change that the Writer has written.
	Notify func(client.Object, Change)
	// NotifyFailure is called once for each status that the Writer cannot write, after
	// the second failed attempt.
	NotifyFailure func(client.Object, error)
	// Unwritten is called when the number of statuses in an owner's report that the
	// Writer could not write changes. It must not block.
	Unwritten func(owner gateway.Owner, count int)

	slots  sync.Once
	free   chan struct{} // contains an element for each running first attempt
	failed failedWrites
}

// Write writes the report about a Gateway and its attached objects. It ignores objects
// that do not exist. It writes the Gateway's status last, so that the other statuses are
// up to date when a client sees the Gateway's new status.
//
// Write attempts each status once, and [Writer.Start] retries failed writes. So the
// returned error, which describes the failed attempts, requires no action.
//
// last is the owner's last report, and Write replaces it. It compares every status if last is
// nil.
func (w *Writer) Write(ctx context.Context, owner gateway.Owner, report gateway.Report, last *Last) error {
	c := last.take(report.Owners, w.failed.objects(owner))
	attached, onGateway := w.attachedWrites(report, c), []write{w.gatewayWrite(owner.NamespacedName, report.Gateway)}
	w.failed.replace(w, owner, slices.Concat(attached, onGateway))
	failed := w.attemptAll(ctx, owner, attached)
	failed = failed.and(w.attemptAll(ctx, owner, onGateway))
	if ctx.Err() == nil { // every status was attempted
		last.set(report)
	}
	return failed.err()
}

// WriteAttached writes the statuses of the ListenerSets, routes and policies in the report, like
// [Writer.Write]. It no longer retries any other status in the owner's earlier reports.
func (w *Writer) WriteAttached(ctx context.Context, owner gateway.Owner, report gateway.Report) error {
	attached := w.attachedWrites(report, comparison{})
	w.failed.replace(w, owner, attached)
	return w.attemptAll(ctx, owner, attached).err()
}

// Forget stops retrying the statuses in the owner's reports.
func (w *Writer) Forget(owner gateway.Owner) { w.failed.replace(w, owner, nil) }

// failures describes a call's failed attempts.
type failures struct {
	count int
	first error
}

func (f failures) and(other failures) failures {
	if f.first == nil {
		f.first = other.first
	}
	f.count += other.count
	return f
}

func (f failures) err() error {
	if f.count <= 1 {
		return f.first
	}
	return fmt.Errorf("%w; and %d more", f.first, f.count-1)
}

// attemptAll writes the statuses concurrently, except for unchanged statuses and for
// statuses that are being retried. It waits until every status was attempted.
func (w *Writer) attemptAll(ctx context.Context, owner gateway.Owner, writes []write) failures {
	var running sync.WaitGroup
	var mu sync.Mutex
	var failed failures
	for _, one := range writes {
		if !w.needsFirstAttempt(ctx, target{owner, one.object}, one) {
			continue
		}
		if !w.acquire(ctx) {
			break
		}
		running.Go(func() {
			defer func() { <-w.free }()
			if err := w.attemptFirst(ctx, target{owner, one.object}, one); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = failed.and(failures{1, err})
			}
		})
	}
	running.Wait()
	if failed.first == nil {
		failed.first = ctx.Err()
	}
	return failed
}

// acquire waits until another first attempt may run. It returns false when the context
// ends.
func (w *Writer) acquire(ctx context.Context) bool {
	w.slots.Do(func() { w.free = make(chan struct{}, firstAttempts) })
	if ctx.Err() != nil {
		return false
	}
	select {
	case w.free <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// needsFirstAttempt reports whether the status differs from the cache and is not being
// retried.
func (w *Writer) needsFirstAttempt(ctx context.Context, t target, one write) bool {
	changed, version := one.check(ctx)
	if w.failed.contains(t) {
		w.failed.retryIfChanged(t, version)
		return false
	}
	return changed
}

// attemptFirst makes the first attempt to write a status, and schedules a retry if it
// fails. A canceled attempt is not retried.
func (w *Writer) attemptFirst(ctx context.Context, t target, one write) error {
	result, err := w.try(ctx, one, firstAttemptTimeout, func() bool { return true })
	if err != nil && ctx.Err() == nil {
		w.failed.add(w, t, one, result.version)
		w.reportFailure(ctx, t, result.object, 1, err)
	}
	return err
}

// try makes one attempt to write a status. It recovers from a panic.
func (w *Writer) try(ctx context.Context, one write, timeout time.Duration, isNewest func() bool) (result attempted, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = recovery.Call(ctx, func() (err error) {
		result, err = one.attempt(ctx, isNewest)
		return err
	})
	return result, err
}

// WriteClass writes a GatewayClass's status. The caller retries it after an error.
func (w *Writer) WriteClass(ctx context.Context, name string, status gatewayv1.GatewayClassStatus) error {
	one := newWrite(w, objectName{"GatewayClass", types.NamespacedName{Name: name}}, status, func(c *gatewayv1.GatewayClass) (bool, []Change) {
		before := c.Status
		merged, changed := MergeClass(before, status, w.now())
		c.Status = merged
		return changed, changes(before.Conditions, merged.Conditions, "")
	})
	_, err := one.attempt(ctx, func() bool { return true })
	return err
}

func (w *Writer) now() metav1.Time { return metav1.NewTime(w.Now().Truncate(time.Second)) }
