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

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// Readiness reports whether the caches for all watched kinds have synced. The zero
// value is ready for use.
type Readiness struct {
	informers map[schema.GroupResource]cache.Informer

	mu sync.Mutex
	// watchErrors contains the API server's last error for each resource.
	watchErrors map[schema.GroupResource]error
}

// WatchFailed is a cache's watch error handler. It records the error and logs it like
// the default handler.
func (r *Readiness) WatchFailed(ctx context.Context, reflector *toolscache.Reflector, err error) {
	toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
	r.recordWatchError(err)
}

// recordWatchError stores an error that the API server returned for a resource.
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

// Setup starts a watch for every watched kind with the manager, in each replica and not only
// in the leader. For each kind it adds a readiness check, such as "watch-services". A
// replica without permission to read a kind neither becomes ready nor becomes leader.
func (r *Readiness) Setup(ctx context.Context, m manager.Manager, watched []kinds.Kind) error {
	r.informers = map[schema.GroupResource]cache.Informer{}
	for _, kind := range watched {
		resource := kind.Resource()
		informer, err := m.GetCache().GetInformer(ctx, kind.NewWatched(), cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("prepare to watch %s: %w", resource, err)
		}
		r.informers[resource] = informer
		if err := m.AddReadyzCheck("watch-"+resource.Resource, r.check(resource)); err != nil {
			return err
		}
	}
	return nil
}

// Synced reports whether the caches for all kinds have synced. Errors that occur later
// do not change the result.
func (r *Readiness) Synced() bool {
	for _, informer := range r.informers {
		if !informer.HasSynced() {
			return false
		}
	}
	return true
}

// check returns a readiness check for one resource.
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
