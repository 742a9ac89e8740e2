package status

import (
	"context"
	"errors"
	"math/bits"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

const (
	minRetryDelay = 500 * time.Millisecond
	maxRetryDelay = time.Minute
)

// target is the part of an object's status that one owner's reports cover.
type target struct {
	owner  gateway.Owner
	object objectName
}

// failedWrites contains the statuses that could not be written. While a status is in it,
// only the retries write the status, one at a time and always with the newest report. The
// zero value is ready for use.
type failedWrites struct {
	mu sync.Mutex
	// byOwner contains the failed writes from each owner's newest report.
	byOwner map[gateway.Owner]map[objectName]*failedWrite
	// queue schedules the retries; nil unless [Writer.Start] runs.
	queue workqueue.TypedRateLimitingInterface[target]
}

// failedWrite is a status that could not be written.
type failedWrite struct {
	// write is from the newest report.
	write
	// version is the object's resource version at the last attempt.
	version  string
	attempts uint // failed attempts
}

// Start retries failed writes until the context is canceled.
func (w *Writer) Start(ctx context.Context) error {
	queue := w.failed.open()
	var workers sync.WaitGroup
	for range retryAttempts {
		workers.Go(func() {
			for w.retryNext(ctx, queue) {
			}
		})
	}
	<-ctx.Done()
	w.failed.close()
	workers.Wait()
	return nil
}

// open creates the queue with the writes that have failed so far.
func (f *failedWrites) open() workqueue.TypedRateLimitingInterface[target] {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[target](minRetryDelay, maxRetryDelay))
	for owner, failed := range f.byOwner {
		for object := range failed {
			f.queue.AddRateLimited(target{owner, object})
		}
	}
	return f.queue
}

// close shuts down the queue.
func (f *failedWrites) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue.ShutDown()
	f.queue = nil
}

// contains reports whether the status could not be written before.
func (f *failedWrites) contains(t target) bool { return f.get(t) != nil }

func (f *failedWrites) get(t target) *failedWrite {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byOwner[t.owner][t.object]
}

// objects returns the objects of the owner's failed writes.
func (f *failedWrites) objects(owner gateway.Owner) map[objectName]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := make(map[objectName]bool, len(f.byOwner[owner]))
	for object := range f.byOwner[owner] {
		found[object] = true
	}
	return found
}

// replace replaces the owner's failed writes by those in a newer report, and drops the
// writes that the report does not contain. It retries a write immediately if the report
// about its object has changed.
func (f *failedWrites) replace(w *Writer, owner gateway.Owner, writes []write) {
	f.mu.Lock()
	defer f.mu.Unlock()
	previous := f.byOwner[owner]
	if len(previous) == 0 {
		return
	}
	kept := map[objectName]*failedWrite{}
	for _, one := range writes {
		failed := previous[one.object]
		if failed == nil {
			continue
		}
		if kept[one.object] = failed; !equality.Semantic.DeepEqual(failed.desired, one.desired) {
			kept[one.object] = &failedWrite{write: one, version: failed.version, attempts: failed.attempts}
			f.retryNow(target{owner, one.object})
		}
	}
	f.byOwner[owner] = kept
	f.changed(w, owner)
}

// changed reports how many of the owner's writes have failed. The caller has locked the
// mutex.
func (f *failedWrites) changed(w *Writer, owner gateway.Owner) {
	count := len(f.byOwner[owner])
	if count == 0 {
		delete(f.byOwner, owner)
	}
	w.Unwritten(owner, count)
}

// retryNow schedules a retry without delay. The caller has locked the mutex.
func (f *failedWrites) retryNow(t target) {
	if f.queue != nil {
		f.queue.Add(t)
	}
}

// retryIfChanged schedules a retry without delay if the object has changed since the last
// attempt. It may then be possible to write its status.
func (f *failedWrites) retryIfChanged(t target, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed := f.byOwner[t.owner][t.object]; failed != nil && failed.version != version {
		failed.version = version
		f.retryNow(t)
	}
}

// add adds a write whose first attempt has failed.
func (f *failedWrites) add(w *Writer, t target, one write, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byOwner == nil {
		f.byOwner = map[gateway.Owner]map[objectName]*failedWrite{}
	}
	if f.byOwner[t.owner] == nil {
		f.byOwner[t.owner] = map[objectName]*failedWrite{}
	}
	f.byOwner[t.owner][t.object] = &failedWrite{write: one, version: version, attempts: 1}
	if f.queue != nil {
		f.queue.AddRateLimited(t)
	}
	f.changed(w, t.owner)
}

// finish records the result of a retry, and returns the number of failed attempts. It
// schedules the next retry if this one failed or if there is a newer report.
func (f *failedWrites) finish(w *Writer, t target, retried *failedWrite, version string, err error) (attempts uint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch current := f.byOwner[t.owner][t.object]; {
	case current == nil:
		f.forget(t)
	case current != retried:
		f.retryNow(t)
	case err == nil:
		delete(f.byOwner[t.owner], t.object)
		f.forget(t)
		f.changed(w, t.owner)
	default:
		current.attempts++
		current.version = version
		if f.queue != nil {
			f.queue.AddRateLimited(t)
		}
	}
	return retried.attempts
}

// forget ends the backoff for a write. The caller has locked the mutex.
func (f *failedWrites) forget(t target) {
	if f.queue != nil {
		f.queue.Forget(t)
	}
}

// retryNext retries the next failed write. It returns false when the queue shuts down.
func (w *Writer) retryNext(ctx context.Context, queue workqueue.TypedRateLimitingInterface[target]) bool {
	t, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(t)
	failed := w.failed.get(t)
	if failed == nil {
		queue.Forget(t)
		return true
	}
	result, err := w.try(ctx, failed.write, retryAttemptTimeout, func() bool { return w.failed.get(t) == failed })
	if ctx.Err() != nil {
		return true // the process is shutting down
	}
	attempts := w.failed.finish(w, t, failed, result.version, err)
	switch {
	case err == nil:
		log.FromContext(ctx).Info("wrote the status after failed attempts", "object", t.object.String(), "owner", t.owner.String(), "failedAttempts", attempts)
	case !errors.Is(err, errOutdated):
		w.reportFailure(ctx, t, result.object, attempts, err)
	}
	return true
}

// reportFailure logs a failed attempt and notifies about it. It logs attempts 1, 2, 4, 8 and
// so on. It notifies only after the second one, because the first retry usually succeeds
// after a temporary failure.
func (w *Writer) reportFailure(ctx context.Context, t target, object client.Object, attempts uint, err error) {
	if bits.OnesCount(attempts) == 1 {
		log.FromContext(ctx).Info("failed to write a status; retrying it", "object", t.object.String(), "owner", t.owner.String(), "failedAttempts", attempts, "cause", err.Error())
	}
	if attempts == notifiedAttempts && object != nil {
		w.NotifyFailure(object, err)
	}
}

// After notifiedAttempts failed attempts, the Writer notifies.
const notifiedAttempts = 2
