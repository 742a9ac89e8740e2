package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// executorWorkers is how many zones or accounts are processed at the same time. One whose
// requests take long must not delay the others.
const executorWorkers = 16

// executorDelay collects changes of Gateways in quick succession.
const executorDelay = time.Second

// executorKey identifies what an executor processes: a zone or an account.
type executorKey interface {
	comparable
	// logValues identify the key in log lines.
	logValues() []any
}

// executor reads and changes what one zone or account has at Cloudflare. It runs beside the
// Gateway reconciler, so that it delays no tunnel and no status.
type executor[K executorKey] interface {
	reconcile.TypedReconciler[K]
	watches() []watch[K]
}

// setupExecutor adds the controller with the name that processes the enqueued keys.
func setupExecutor[K executorKey](m manager.Manager, name string, e executor[K], enqueued chan event.TypedGenericEvent[K]) error {
	controller := builder.TypedControllerManagedBy[K](m).
		Named(name).
		WithOptions(ctrlcontroller.TypedOptions[K]{MaxConcurrentReconciles: executorWorkers, RateLimiter: rateLimiter[K]()}).
		WithLogConstructor(executorLogger[K](m.GetLogger())).
		WatchesRawSource(source.TypedChannel(enqueued, handler.TypedFuncs[K, K]{GenericFunc: addLater[K]}))
	return register(controller, e.watches()).Complete(e)
}

// addLater adds a key to the queue after [executorDelay]. Further changes until then cause no
// other reconcile.
func addLater[K comparable](_ context.Context, e event.TypedGenericEvent[K], queue workqueue.TypedRateLimitingInterface[K]) {
	queue.AddAfter(e.Object, executorDelay)
}

// executorLogger adds the key to every log line in a reconcile.
func executorLogger[K executorKey](logger logr.Logger) func(*K) logr.Logger {
	return func(key *K) logr.Logger {
		if key == nil {
			return logger
		}
		return logger.WithValues((*key).logValues()...)
	}
}

// enqueueKeys returns an event handler that enqueues the keys that a change affects.
func enqueueKeys[K comparable, T client.Object](find func(context.Context, T) ([]K, error)) handler.TypedEventHandler[client.Object, K] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []K {
		var found []K
		// The informer does not recover from a panic.
		err := recovery.Call(ctx, func() (err error) {
			found, err = find(ctx, object.(T))
			return err
		})
		if err != nil {
			// Reads from the cache fail only if an index is missing, which is a bug.
			log.FromContext(ctx).Error(err, "failed to find the zones or accounts that a change affects", "object", client.ObjectKeyFromObject(object))
		}
		return found
	})
}

// maxExecutorSteps limits the steps in one reconcile of a zone or an account. A zone with
// 20,000 new hostnames needs about 100 batches. A reconcile that exceeds the limit is a bug.
const maxExecutorSteps = 1000

// runSteps runs next until it reports that no step can be executed now. It then returns the
// result of next.
func runSteps(ctx context.Context, next func() (done bool, result reconcile.Result, err error)) (reconcile.Result, error) {
	for range maxExecutorSteps {
		done, result, err := next()
		if done || err != nil {
			return result, err
		}
		if ctx.Err() != nil {
			return reconcile.Result{}, nil // the process is shutting down
		}
	}
	return reconcile.Result{}, fmt.Errorf("the changes did not finish within %d steps", maxExecutorSteps)
}

// requeueAfter returns the result of a reconcile that waits for the delay; without one, for a
// change.
func requeueAfter(waits bool, delay time.Duration) reconcile.Result {
	if !waits {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(delay, time.Millisecond)}
}

// logFailure logs the message and why a step has failed. Waiting for the API request budget is
// normal.
func logFailure[A ~string](ctx context.Context, message string, action A, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	level := 0
	if isDelayed(err) {
		level = 1
	}
	log.FromContext(ctx).V(level).Info(message, "action", action, "cause", err.Error())
}

// isDelayed reports whether the API request budget has delayed the call. Nothing was sent.
func isDelayed(err error) bool {
	_, delayed := errors.AsType[*provider.RateLimitedError](err)
	return delayed
}
