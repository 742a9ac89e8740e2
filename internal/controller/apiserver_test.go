package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// write describes a write to the API server.
type write struct {
	verb, kind, namespace, name string
	// subresource is "status" or empty.
	subresource string
}

func (w write) String() string {
	kind := w.kind
	if w.subresource != "" {
		kind += "/" + w.subresource
	}
	return fmt.Sprintf("%s %s %s/%s", w.verb, kind, w.namespace, w.name)
}

// apiServer simulates the API server. It records the controller's writes, and tests can
// make requests fail and the cache stale.
type apiServer struct {
	t testing.TB
	// kube is the tests' own client. Its writes are not recorded.
	kube client.WithWatch
	// injectError is called before each write. It returns whether the write is applied
	// and the error that the controller receives.
	injectError func(write) (applied bool, err error)

	mu     sync.Mutex
	writes []write
	// created counts the objects that were created.
	created int
	// cached is the cache from which the controller reads; nil if it reads from the API
	// server.
	cached client.Reader
	// watched are the Gateways that events in the cache have queued.
	watched workqueue.TypedRateLimitingInterface[state.Key]
	// staleCache contains the Tunnels and Gateways in a stale cache; nil if the cache
	// is up to date.
	staleCache client.Reader
}

func newAPIServer(t testing.TB, objects ...client.Object) *apiServer {
	for i, object := range objects {
		if object.GetUID() == "" { // the real API server sets it
			object.SetUID(types.UID(fmt.Sprintf("initial-%d", i)))
		}
	}
	builder := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(gatewayCRD()).WithObjects(objects...).WithReturnManagedFields().WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(&v1alpha1.Tunnel{}, &gatewayv1.Gateway{}, &gatewayv1.ListenerSet{}, &gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{})
	for _, index := range state.Indexes(controllerName) {
		builder = builder.WithIndex(index.Object, index.Field, index.Extract)
	}
	// The real API server supports the field selector metadata.name for every kind.
	crds := &metav1.PartialObjectMetadata{}
	crds.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	builder = builder.WithIndex(crds, metav1.ObjectNameField, func(o client.Object) []string { return []string{o.GetName()} })
	return &apiServer{t: t, kube: builder.Build(), injectError: func(write) (bool, error) { return true, nil }}
}

// client is the controller's client, which reads from the cache.
func (a *apiServer) client() client.WithWatch {
	return interceptor.NewClient(a.kube, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return a.reader(c, object).Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return a.reader(c, list).List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return a.write(a.describe("create", "", o), func() error { return a.create(ctx, c, o, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return a.write(a.describe("update", "", o), func() error { return c.Update(ctx, o, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			return a.write(a.describe("patch", "", o), func() error { return c.Patch(ctx, o, p, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return a.write(a.describe("delete", "", o), func() error { return c.Delete(ctx, o, options...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			return a.write(a.describe("apply", "", toUnstructured(a.t, o)), func() error { return a.apply(ctx, c, o, options...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			return a.write(a.describe("update", sub, o), func() error { return c.SubResource(sub).Update(ctx, o, options...) })
		},
	})
}

// reader returns the reader that provides objects of this type to the controller.
func (a *apiServer) reader(kube client.Reader, object any) client.Reader {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch object.(type) {
	case *v1alpha1.Tunnel, *v1alpha1.TunnelList, *gatewayv1.Gateway, *gatewayv1.GatewayList:
		if a.staleCache != nil {
			return a.staleCache
		}
	}
	if a.cached != nil {
		return a.cached
	}
	return kube
}

// write records a write and executes it, unless injectError prevents that.
func (a *apiServer) write(w write, do func() error) error {
	a.mu.Lock()
	a.writes = append(a.writes, w)
	a.mu.Unlock()
	applied, err := a.injectError(w)
	if !applied {
		return err
	}
	if writeErr := do(); err == nil {
		err = writeErr
	}
	return err
}

// create assigns a UID to the object and creates it.
func (a *apiServer) create(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
	a.mu.Lock()
	a.created++
	o.SetUID(types.UID(fmt.Sprintf("created-%d", a.created)))
	a.mu.Unlock()
	return c.Create(ctx, o, options...)
}

// apply applies an object and increments its generation if the spec changes.
func (a *apiServer) apply(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	object := toUnstructured(a.t, o)
	before := object.DeepCopy()
	_ = a.kube.Get(ctx, client.ObjectKeyFromObject(object), before)
	if err := c.Apply(ctx, o, options...); err != nil {
		return err
	}
	after := object.DeepCopy()
	if err := a.kube.Get(ctx, client.ObjectKeyFromObject(object), after); err != nil {
		return err
	}
	if after.Object["spec"] == nil || before.GetGeneration() > 0 && reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) {
		return nil
	}
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"generation":%d}}`, before.GetGeneration()+1))
	if err := a.kube.Patch(ctx, after, patch, client.FieldOwner("api-server")); err != nil {
		return err
	}
	text, err := json.Marshal(after.Object)
	if err != nil {
		return err
	}
	reflect.ValueOf(o).Elem().SetZero()
	return json.Unmarshal(text, o)
}

func toUnstructured(t testing.TB, o runtime.ApplyConfiguration) *unstructured.Unstructured {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func (a *apiServer) describe(verb, subresource string, o client.Object) write {
	gvk, err := apiutil.GVKForObject(o, a.kube.Scheme())
	if err != nil {
		a.t.Fatal(err)
	}
	return write{verb: verb, kind: gvk.Kind, namespace: o.GetNamespace(), name: o.GetName(), subresource: subresource}
}

// drainWrites returns the writes since the previous call.
func (a *apiServer) drainWrites() []write {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer func() { a.writes = nil }()
	return a.writes
}

// freezeCache keeps new Tunnels and Gateways from the controller's cache.
func (a *apiServer) freezeCache() {
	a.t.Helper()
	var objects []client.Object
	for _, list := range []client.ObjectList{&v1alpha1.TunnelList{}, &gatewayv1.GatewayList{}} {
		if err := a.kube.List(a.t.Context(), list); err != nil {
			a.t.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			a.t.Fatal(err)
		}
		for _, item := range items {
			objects = append(objects, item.(client.Object))
		}
	}
	builder := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...)
	for _, index := range state.Indexes(controllerName) {
		builder = builder.WithIndex(index.Object, index.Field, index.Extract)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.staleCache = builder.Build()
}

// unfreezeCache makes the cache up to date again.
func (a *apiServer) unfreezeCache() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.staleCache = nil
}

// collectGarbage deletes the connector objects whose owner does not exist, like the
// Kubernetes garbage collector.
func (a *apiServer) collectGarbage() {
	a.t.Helper()
	var tunnels v1alpha1.TunnelList
	if err := a.kube.List(a.t.Context(), &tunnels); err != nil {
		a.t.Fatal(err)
	}
	for _, object := range a.connectorObjects() {
		owner := metav1.GetControllerOf(object)
		if owner != nil && !slices.ContainsFunc(tunnels.Items, func(t v1alpha1.Tunnel) bool { return t.UID == owner.UID }) {
			if err := a.kube.Delete(a.t.Context(), object); err != nil {
				a.t.Fatal(err)
			}
		}
	}
}

// connectorObjects returns all connector objects and all Secrets.
func (a *apiServer) connectorObjects() []client.Object {
	a.t.Helper()
	var found []client.Object
	for _, kind := range []string{"Secret", "ServiceAccount", "NetworkPolicy", "Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler"} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvkOf(a.t, kind))
		if err := a.kube.List(a.t.Context(), list); err != nil {
			a.t.Fatal(err)
		}
		for i := range list.Items {
			found = append(found, &list.Items[i])
		}
	}
	return found
}

// gvkOf returns the scheme's only GroupVersionKind with this kind.
func gvkOf(t testing.TB, kind string) (gvk schema.GroupVersionKind) {
	t.Helper()
	for registered := range Scheme().AllKnownTypes() {
		if registered.Kind == kind {
			return registered
		}
	}
	t.Fatalf("the scheme has no kind %s", kind)
	return gvk
}

// countingReader counts calls to Get.
type countingReader struct {
	client.Reader
	reads *int
}

// Get implements client.Reader.
func (r countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	*r.reads++
	return r.Reader.Get(ctx, key, object, options...)
}
