package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/recovery"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// serviceImports watches the ServiceImports while the cluster has their CRD, which can be
// installed, upgraded and removed at any time. It watches the newest version that the
// cluster serves.
type serviceImports struct {
	cache   cache.Cache
	live    client.Reader // the API server
	watches watches
	// requeue reconciles a Gateway, and record records that a change affects it.
	requeue, record func(state.Key)

	mu sync.Mutex
	// version is the version that the cache has, or empty. It is not known before a reconcile has
	// succeeded.
	version string
	isKnown bool
}

// setupImports adds a controller that watches the CRD of ServiceImports.
func setupImports(m manager.Manager, s *serviceImports) error {
	named := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == multicluster.CRD })
	return builder.TypedControllerManagedBy[reconcile.Request](m).
		Named("serviceimports").
		WithOptions(ctrlcontroller.Options{RateLimiter: rateLimiter[reconcile.Request]()}).
		WatchesRawSource(atStart(reconcile.Request{})). // without a CRD, no event leads to a reconcile
		Watches(kinds.CustomResourceDefinition.NewWatched(), &handler.EnqueueRequestForObject{}, builder.WithPredicates(named)).
		Complete(reconcile.Func(s.reconcile))
}

const (
	// importSyncTimeout limits how long one attempt waits until the ServiceImports are read.
	importSyncTimeout = 10 * time.Second
	// importRetryInterval is when the next attempt begins. The API server serves a new CRD
	// after a moment.
	importRetryInterval = time.Second
)

// reconcile watches the version that the API server now serves. The CRD names it: discovery
// can still have the versions of an older CRD, and nothing reports when it changes. The cache has
// only the metadata of CRDs, and RBAC permits no Get.
func (s *serviceImports) reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var crds apiextensionsv1.CustomResourceDefinitionList
	if err := s.live.List(ctx, &crds, client.MatchingFields{"metadata.name": multicluster.CRD}); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the CRD %s: %w", multicluster.CRD, err)
	}
	version := ""
	if len(crds.Items) > 0 {
		version = servedVersion(&crds.Items[0])
	}
	err := s.watch(ctx, version)
	if meta.IsNoMatchError(err) {
		return reconcile.Result{RequeueAfter: importRetryInterval}, nil
	}
	return reconcile.Result{}, err
}

// servedVersion returns the newest version of ServiceImports that the CRD serves, or "". A CRD that
// the API server has not accepted serves none.
func servedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.DeletionTimestamp != nil || !isEstablished(crd) {
		return ""
	}
	for _, version := range multicluster.Versions() {
		if slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return v.Name == version && v.Served
		}) {
			return version
		}
	}
	return ""
}

func isEstablished(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// watch replaces the version in the cache, and reconciles the Gateways that depend on it.
func (s *serviceImports) watch(ctx context.Context, version string) error {
	before, isKnown := s.watched()
	if isKnown && before == version {
		return nil
	}
	if version != "" {
		if err := s.start(ctx, version); err != nil {
			return err
		}
	}
	s.mu.Lock()
	s.version, s.isKnown = version, true
	s.mu.Unlock()
	if before != version {
		log.FromContext(ctx).Info("the served version of ServiceImports has changed", "before", before, "version", version)
	}
	keys, err := s.watches.fromAnyImport(ctx)
	s.enqueue(keys)
	if before != "" {
		err = errors.Join(err, s.cache.RemoveInformer(ctx, newImport(before)))
	}
	return err
}

// start fills the cache with a version and handles its changes.
func (s *serviceImports) start(ctx context.Context, version string) error {
	ctx, cancel := context.WithTimeout(ctx, importSyncTimeout)
	defer cancel()
	informer, err := s.cache.GetInformer(ctx, newImport(version))
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { s.changed(o) },
			UpdateFunc: func(_, o any) { s.changed(o) },
			DeleteFunc: func(o any) { s.changed(o) },
		})
	}
	if err != nil {
		_ = s.cache.RemoveInformer(ctx, newImport(version)) // the next attempt starts again
		return fmt.Errorf("read the ServiceImports in version %s: %w", version, err)
	}
	return nil
}

// changed reconciles the Gateways that depend on a changed ServiceImport.
func (s *serviceImports) changed(object any) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	o, ok := object.(client.Object)
	if !ok {
		return
	}
	ctx := context.Background()
	// The informer does not recover from a panic.
	err := recovery.Call(ctx, func() error {
		keys, err := s.watches.fromBackend(ctx, envoy.EndpointSource{NamespacedName: client.ObjectKeyFromObject(o), Import: true})
		s.enqueue(keys)
		return err
	})
	if err != nil {
		// Reads from the cache fail only if an index is missing, which is a bug.
		log.Log.Error(err, "failed to find the Gateways that a change affects", "object", client.ObjectKeyFromObject(o))
	}
}

func (s *serviceImports) enqueue(keys []state.Key) {
	for _, key := range keys {
		s.record(key)
		s.requeue(key)
	}
}

func (s *serviceImports) watched() (version string, isKnown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, s.isKnown
}

// errUnknownVersion ends a reconcile that needs ServiceImports. The reconcile is repeated soon.
var errUnknownVersion = errors.New("it is not known yet in which version the cluster serves ServiceImports")

// get reads a ServiceImport from the cache. The error is [state.ErrNoServiceImports] when the
// cluster serves none.
func (s *serviceImports) get(ctx context.Context, key client.ObjectKey, into *multicluster.ServiceImport) error {
	version, isKnown := s.watched()
	switch {
	case !isKnown:
		return errUnknownVersion
	case version == "":
		return state.ErrNoServiceImports
	}
	object := newImport(version)
	if err := s.cache.Get(ctx, key, object, client.UnsafeDisableDeepCopy); err != nil { // FromUnstructured copies it
		return err
	}
	*into = *multicluster.FromUnstructured(object.Object)
	return nil
}

func newImport(version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kinds.ServiceImport.GVK().GroupKind().WithVersion(version))
	return object
}

// importReader reads ServiceImports in the version that the cluster serves, and other
// objects as its Reader does.
type importReader struct {
	client.Reader
	imports *serviceImports
}

// Get implements client.Reader.
func (r importReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if found, ok := object.(*multicluster.ServiceImport); ok {
		return r.imports.get(ctx, key, found)
	}
	return r.Reader.Get(ctx, key, object, opts...)
}
