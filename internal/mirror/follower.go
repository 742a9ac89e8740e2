package mirror

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// follower lists objects and watches them. It is the store of its Reflector.
type follower struct {
	cache.Store
	live      client.WithWatch
	empty     client.ObjectList
	namespace string
	notify    func()
	// ended is called when the objects can no longer be listed.
	ended func()
	stop  context.CancelFunc
	used  time.Time // when its objects were last listed; the Mirror's mu protects it

	ready chan struct{} // closed after the first list
	once  sync.Once
	// err is the error of the first list. It is set before ready is closed.
	err error

	mu sync.Mutex
	// failure is the error of the last list after the first one; nil if it succeeded.
	failure      error
	failingSince time.Time
}

// relist is how long a follower waits until it lists again after an error. A user who may list
// but not watch sees changes after that time.
var relist = wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.2, Steps: 5, Cap: 15 * time.Second}

func newFollower(live client.WithWatch, list client.ObjectList, namespace string) *follower {
	empty := list.DeepCopyObject().(client.ObjectList)
	return &follower{
		Store: cache.NewStore(cache.MetaNamespaceKeyFunc), live: live, empty: empty, namespace: namespace, used: time.Now(), ready: make(chan struct{}),
	}
}

// quiet returns a context without log: what a user should know is on the page.
func quiet(ctx context.Context) context.Context { return klog.NewContext(ctx, logr.Discard()) }

// run follows the objects until ctx ends.
func (f *follower) run(ctx context.Context) {
	requests := listWatch{&cache.ListWatch{ListWithContextFunc: f.list, WatchFuncWithContext: f.watch}}
	backoff := relist
	cache.NewReflectorWithOptions(requests, nil, f, cache.ReflectorOptions{Backoff: &backoff}).RunWithContext(ctx)
	f.finish(ctx.Err())
}

// listWatch makes the Reflector list before it watches: the first list shows which permission
// is missing.
type listWatch struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported is the interface of client-go.
func (listWatch) IsWatchListSemanticsUnSupported() bool { return true }

func (f *follower) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list := f.newList()
	err := f.live.List(ctx, list, f.options(o))
	switch {
	case err == nil || ctx.Err() != nil:
	case o.Continue != "" && apierrors.IsResourceExpired(err): // the Reflector lists everything at once
	case f.finish(err):
		f.stop()
	case isRefusal(err):
		f.ended()
	default:
		f.fail(err)
	}
	return list, err
}

// fail records the error for a list after the first one.
func (f *follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil {
		f.failingSince = time.Now()
	}
	f.failure = err
}

// outdated returns why the objects have not been listed since a point in time although they
// should have been; nil if they are current.
func (f *follower) outdated(since time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure == nil || f.failingSince.After(since) {
		return nil
	}
	return f.failure
}

func (f *follower) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return f.live.Watch(ctx, f.newList(), f.options(o))
}

func (f *follower) newList() client.ObjectList {
	return f.empty.DeepCopyObject().(client.ObjectList)
}

func (f *follower) options(o metav1.ListOptions) *client.ListOptions {
	return &client.ListOptions{Namespace: f.namespace, Limit: o.Limit, Continue: o.Continue, Raw: &o}
}

// finish ends the first list, and reports whether it was still running.
func (f *follower) finish(err error) (first bool) {
	f.once.Do(func() {
		f.err, first = err, true
		close(f.ready)
	})
	return first
}

// isRefused reports whether the first list has failed.
func (f *follower) isRefused() bool {
	select {
	case <-f.ready:
		return f.err != nil
	default:
		return false
	}
}

// isStillRefused makes the first list again.
func (f *follower) isStillRefused(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := f.live.List(ctx, f.newList(), &client.ListOptions{Namespace: f.namespace, Limit: 1})
	return err != nil
}

// objects returns the objects in the API server's order.
func (f *follower) objects() []runtime.Object {
	all := f.List()
	slices.SortFunc(all, func(a, b any) int {
		x, y := a.(client.Object), b.(client.Object)
		return cmp.Or(strings.Compare(x.GetNamespace(), y.GetNamespace()), strings.Compare(x.GetName(), y.GetName()))
	})
	objects := make([]runtime.Object, len(all))
	for i := range all {
		objects[i] = all[i].(runtime.Object)
	}
	return objects
}

// strip removes what takes memory and no plan reads.
func strip(o any) error {
	object, ok := o.(client.Object)
	if !ok {
		return fmt.Errorf("a %T has no metadata", o)
	}
	object.SetManagedFields(nil)
	delete(object.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	return nil
}

// Replace implements cache.ReflectorStore.
func (f *follower) Replace(all []any, version string) error {
	for _, o := range all {
		if err := strip(o); err != nil {
			return err
		}
	}
	same := f.hasSameVersions(all)
	err := f.Store.Replace(all, version)
	f.mu.Lock()
	f.failure = nil
	f.mu.Unlock()
	if !f.finish(nil) && !same {
		f.notify()
	}
	return err
}

// hasSameVersions reports whether the store has exactly these versions of objects.
func (f *follower) hasSameVersions(all []any) bool {
	if len(all) != len(f.ListKeys()) {
		return false
	}
	return !slices.ContainsFunc(all, func(o any) bool {
		known, exists, err := f.Get(o)
		if err != nil || !exists {
			return true
		}
		a, b := known.(client.Object), o.(client.Object)
		return a.GetUID() != b.GetUID() || a.GetResourceVersion() != b.GetResourceVersion()
	})
}

// Add implements cache.ReflectorStore.
func (f *follower) Add(o any) error { return f.change(o, f.Store.Add) }

// Update implements cache.ReflectorStore.
func (f *follower) Update(o any) error { return f.change(o, f.Store.Update) }

// Delete implements cache.ReflectorStore.
func (f *follower) Delete(o any) error { return f.change(o, f.Store.Delete) }

func (f *follower) change(o any, change func(any) error) error {
	if err := strip(o); err != nil {
		return err
	}
	defer f.notify()
	return change(o)
}
