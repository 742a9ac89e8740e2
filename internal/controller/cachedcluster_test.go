package controller

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// startCache starts the manager's cache for the simulated API server, with the informers of
// all kinds that are watched. The context ends it.
func startCache(ctx context.Context, t testing.TB, kube client.WithWatch) cache.Cache {
	t.Helper()
	started, err := NewCache(Scope{ControllerNamespace: controllerNamespace, AllSecrets: true}, &Readiness{})(
		&rest.Config{Host: "http://127.0.0.1:1"}, cache.Options{
			Scheme: kube.Scheme(), Mapper: newMapper(),
			NewInformer: func(_ toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
				return toolscache.NewSharedIndexInformer(listerWatcher(ctx, t, kube, object), object, resync, indexers)
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range state.Indexes(controllerName) {
		if err := started.IndexField(ctx, index.Object, index.Field, index.Extract); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range kinds.Select(func(kind kinds.Kind) bool { return !kind.HasVersions() }) {
		if _, err := started.GetInformer(ctx, kind.NewWatched()); err != nil {
			t.Fatal(err)
		}
	}
	go started.Start(ctx) //nolint:errcheck // it ends with the context
	if !started.WaitForCacheSync(ctx) {
		t.Fatal("the cache has not synchronized")
	}
	return started
}

// newMapper returns a mapper for all kinds and their lists.
func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range kinds.Select(func(kinds.Kind) bool { return true }) {
		scope := meta.RESTScopeNamespace
		if kind.ClusterScoped {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind.GVK(), scope)
		mapper.Add(kind.GVK().GroupVersion().WithKind(kind.GVK().Kind+"List"), scope)
	}
	return mapper
}

// listerWatcher lists and watches objects of the same kind in the simulated API server.
func listerWatcher(ctx context.Context, t testing.TB, kube client.WithWatch, object runtime.Object) toolscache.ListerWatcher {
	t.Helper()
	newList := func() client.ObjectList {
		gvk, err := kube.GroupVersionKindFor(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, isMetadata := object.(*metav1.PartialObjectMetadata); isMetadata {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return list
		}
		list, err := kube.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			t.Fatal(err)
		}
		return list.(client.ObjectList)
	}
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			list := newList()
			return list, kube.List(ctx, list)
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
			events, err := kube.Watch(ctx, newList())
			if err != nil {
				return nil, err
			}
			return buffered(asMetadata(events, object)), nil
		},
	}, listsFirst{})
}

// asMetadata returns a watch with the metadata of the objects if the informer is about metadata:
// the simulated API server always sends the objects.
func asMetadata(events apiwatch.Interface, object runtime.Object) apiwatch.Interface {
	prototype, isMetadata := object.(*metav1.PartialObjectMetadata)
	if !isMetadata {
		return events
	}
	return apiwatch.Filter(events, func(e apiwatch.Event) (apiwatch.Event, bool) {
		found, err := meta.Accessor(e.Object)
		if err != nil {
			return e, true
		}
		only := meta.AsPartialObjectMetadata(found)
		only.SetGroupVersionKind(prototype.GroupVersionKind())
		e.Object = only
		return e, true
	})
}

// buffered returns a watch that takes events at once: the simulated API server panics if one
// of its watches is behind.
func buffered(events apiwatch.Interface) apiwatch.Interface {
	taken := make(chan apiwatch.Event, 100_000)
	proxy := apiwatch.NewProxyWatcher(taken)
	go func() {
		defer events.Stop()
		for {
			select {
			case e, ok := <-events.ResultChan():
				if !ok {
					return
				}
				taken <- e
			case <-proxy.StopChan():
				return
			}
		}
	}()
	return proxy
}

// listsFirst is a client whose watches do not begin with the existing objects.
type listsFirst struct{}

// IsWatchListSemanticsUnSupported is how client-go finds out.
func (listsFirst) IsWatchListSemanticsUnSupported() bool { return true }

// useCache makes the controller read from a real cache, which follows the simulated API
// server. It restarts the controller. The watches queue the Gateways in h.watched.
func (h *harness) useCache() {
	h.t.Helper()
	h.useCacheUntil(h.t.Context())
}

// useCacheUntil is like useCache with a cache that ends with the context.
func (h *harness) useCacheUntil(ctx context.Context) {
	h.t.Helper()
	started := startCache(ctx, h.t, h.kube)
	h.cached, h.changes, h.own = started, &state.Changes{}, newOwnWrites()
	h.watched = workqueue.NewTypedRateLimitingQueue(rateLimiter[state.Key]())
	h.restart()
	w := watches{reader: h.client(), controllerName: controllerName, namespace: controllerNamespace, changes: h.changes, own: h.own}
	for _, row := range w.all(h.observer.pending.add) {
		informer, err := started.GetInformer(ctx, row.kind.NewWatched())
		if err != nil {
			h.t.Fatal(err)
		}
		if _, err := informer.AddEventHandler(eventHandler(ctx, row, h.watched)); err != nil {
			h.t.Fatal(err)
		}
	}
}

// eventHandler filters and maps events as controller-runtime does.
func eventHandler(ctx context.Context, row watch[state.Key], queue workqueue.TypedRateLimitingInterface[state.Key]) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if e := (event.CreateEvent{Object: o.(client.Object)}); row.filter.Create(e) {
				row.handler.Create(ctx, e, queue)
			}
		},
		UpdateFunc: func(before, after any) {
			if e := (event.UpdateEvent{ObjectOld: before.(client.Object), ObjectNew: after.(client.Object)}); row.filter.Update(e) {
				row.handler.Update(ctx, e, queue)
			}
		},
		DeleteFunc: func(o any) {
			if e := (event.DeleteEvent{Object: o.(client.Object)}); row.filter.Delete(e) {
				row.handler.Delete(ctx, e, queue)
			}
		},
	}
}

// reconcileQueued reconciles the queued Gateways until none is queued for a while, and returns
// how often.
func (h *harness) reconcileQueued() (reconciles int) {
	h.t.Helper()
	for idle := 0; idle < 50; idle++ {
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // no condition says that no further event follows
		for h.watched.Len() > 0 {
			key, _ := h.watched.Get()
			h.advance(driftInterval / 100) // no write waits for others
			h.reconcileOnce()
			h.watched.Done(key)
			reconciles, idle = reconciles+1, 0
		}
	}
	return reconciles
}

// waitForCache waits until the cache has the object's version in the API server.
func (h *harness) waitForCache(object client.Object) {
	h.t.Helper()
	key := client.ObjectKeyFromObject(object)
	if err := h.kube.Get(h.t.Context(), key, object); err != nil {
		h.t.Fatal(err)
	}
	want := object.GetResourceVersion()
	for range 10_000 {
		err := h.cached.Get(h.t.Context(), key, object)
		if client.IgnoreNotFound(err) != nil {
			h.t.Fatal(err)
		}
		if err == nil && object.GetResourceVersion() == want {
			return
		}
		time.Sleep(100 * time.Microsecond) //nolint:forbidigo // between two attempts
	}
	h.t.Fatalf("the cache does not follow %s", key)
}
