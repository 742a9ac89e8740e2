package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Readiness tells whether all that the controller watches has been read once.
// The zero value is ready for use.
type Readiness struct {
	informers map[schema.GroupResource]cache.Informer

	mu sync.Mutex
	// watchErrors is the API server's last answer to a watch that it did not allow.
	watchErrors map[schema.GroupResource]error
}

// WatchFailed takes note of why something cannot be watched; it is a cache's
// handler of such errors, and logs as the usual one does.
func (r *Readiness) WatchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	r.recordWatchError(err)
}

// recordWatchError keeps what the API server says of a resource.
func (r *Readiness) recordWatchError(err error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return
	}
	details := status.Status().Details
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watchErrors == nil {
		r.watchErrors = map[schema.GroupResource]error{}
	}
	r.watchErrors[schema.GroupResource{Group: details.Group, Resource: details.Kind}] = err
}

// Setup has every kind watched as soon as the manager starts, by each replica
// and not only the one that leads, and adds a check of readiness for each of
// them: "watch-services" and so on. A replica that may not read something
// neither becomes ready nor leads.
func (r *Readiness) Setup(ctx context.Context, m manager.Manager) error {
	r.informers = map[schema.GroupResource]cache.Informer{}
	for _, object := range append(inputKinds(), managedKinds()...) {
		found, err := resourceOf(object, m.GetScheme(), m.GetRESTMapper())
		if err != nil {
			return err
		}
		informer, err := m.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("preparing to watch %s: %w", found, err)
		}
		r.informers[found.GroupResource] = informer
		if err := m.AddReadyzCheck("watch-"+found.Resource, r.check(found.GroupResource)); err != nil {
			return err
		}
	}
	return nil
}

// Synced reports whether everything has been read once. What is lost later does
// not change that.
func (r *Readiness) Synced() bool {
	for _, informer := range r.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

func (r *Readiness) check(watched schema.GroupResource) healthz.Checker {
	return func(*http.Request) error {
		if r.informers[watched].HasSynced() {
			return nil
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := r.watchErrors[watched]; err != nil {
			return fmt.Errorf("%s have not been read yet: %w", watched, err)
		}
		return fmt.Errorf("%s have not been read yet", watched)
	}
}
