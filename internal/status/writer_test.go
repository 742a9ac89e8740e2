package status_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

var (
	gatewayName = types.NamespacedName{Namespace: "infra", Name: "shared"}
	owner       = gateway.Owner{Kind: gateway.KindGateway, NamespacedName: gatewayName}
	setName     = types.NamespacedName{Namespace: "team", Name: "set"}
	routeName   = types.NamespacedName{Namespace: "team", Name: "route"}
)

func named[T client.Object](object T, name types.NamespacedName) T {
	object.SetNamespace(name.Namespace)
	object.SetName(name.Name)
	object.SetGeneration(2)
	return object
}

// fakeCluster is an API server with a Gateway, a ListenerSet and a route. It records a
// Writer's calls.
type fakeCluster struct {
	server client.WithWatch
	writer *status.Writer
	// cached is the Gateway in the cache, when it differs from the API server.
	cached *gatewayv1.Gateway

	mu sync.Mutex
	// updateError returns the error for a status update. It can be nil.
	updateError func(client.Object) error
	// stuck is an object whose status updates get no response.
	stuck     types.NamespacedName
	writes    []string
	liveReads []string
	// unwritten counts the statuses that the Writer could not write.
	unwritten int
	// failures contains the kinds of the objects about whose statuses the Writer
	// notified.
	failures []string
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	route := named(&gatewayv1.HTTPRoute{}, routeName)
	route.Spec.ParentRefs = []gatewayv1.ParentReference{ref("g")}
	kinds := []client.Object{&gatewayv1.GatewayClass{}, &gatewayv1.Gateway{}, &gatewayv1.ListenerSet{}, &gatewayv1.HTTPRoute{}}
	cluster := &fakeCluster{server: fake.NewClientBuilder().
		WithScheme(manifest.Scheme()).
		WithStatusSubresource(kinds...).
		WithObjects(named(&gatewayv1.Gateway{}, gatewayName), named(&gatewayv1.ListenerSet{}, setName), route).
		Build()}
	cluster.writer = &status.Writer{
		Client:         interceptor.NewClient(cluster.server, interceptor.Funcs{Get: cluster.readCache, SubResourceUpdate: cluster.update}),
		Live:           interceptor.NewClient(cluster.server, interceptor.Funcs{Get: cluster.readLive}),
		ControllerName: controllerName,
		Now:            func() time.Time { return now.Add(time.Millisecond) },
		Notify:         func(client.Object, status.Change) {},
		NotifyFailure:  func(o client.Object, _ error) { cluster.record(&cluster.failures, kindOf(o)) },
		Unwritten: func(_ gateway.Owner, count int) {
			cluster.mu.Lock()
			defer cluster.mu.Unlock()
			cluster.unwritten = count
		},
	}
	return cluster
}

func (cluster *fakeCluster) readCache(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if g, ok := object.(*gatewayv1.Gateway); ok && cluster.cached != nil {
		cluster.cached.DeepCopyInto(g)
		return nil
	}
	return c.Get(ctx, key, object, opts...)
}

func (cluster *fakeCluster) readLive(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	cluster.record(&cluster.liveReads, kindOf(object))
	return c.Get(ctx, key, object, opts...)
}

func (cluster *fakeCluster) update(ctx context.Context, c client.Client, resource string, object client.Object, opts ...client.SubResourceUpdateOption) error {
	cluster.record(&cluster.writes, kindOf(object))
	cluster.mu.Lock()
	stuck, updateError := cluster.stuck, cluster.updateError
	cluster.mu.Unlock()
	if client.ObjectKeyFromObject(object) == stuck {
		<-ctx.Done()
		return ctx.Err()
	}
	if updateError != nil {
		if err := updateError(object); err != nil {
			return err
		}
	}
	return c.SubResource(resource).Update(ctx, object, opts...)
}

// record appends a value to a list. The Writer writes statuses concurrently.
func (cluster *fakeCluster) record(list *[]string, value string) {
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	*list = append(*list, value)
}

// wantAttempts checks the kinds of the written objects. The statuses before the Gateway's
// status are written in any order.
func (cluster *fakeCluster) wantAttempts(t *testing.T, want ...string) {
	t.Helper()
	cluster.mu.Lock()
	defer cluster.mu.Unlock()
	got := slices.Clone(cluster.writes)
	attached := slices.Index(got, gateway.KindGateway)
	if attached < 0 {
		attached = len(got)
	}
	slices.Sort(got[:attached])
	wantCalls(t, "written", got, want...)
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *gatewayv1.GatewayClass:
		return "GatewayClass"
	case *gatewayv1.Gateway:
		return gateway.KindGateway
	case *gatewayv1.ListenerSet:
		return gateway.KindListenerSet
	default:
		return gateway.KindHTTPRoute
	}
}

// report returns the same conditions for every object, for its current generation.
func report() gateway.Report {
	conditions := []metav1.Condition{condition("Accepted", isTrue, 2)}
	return gateway.Report{
		Gateway:      gatewayv1.GatewayStatus{Conditions: conditions},
		ListenerSets: []gateway.ListenerSetStatus{{NamespacedName: setName, Status: gatewayv1.ListenerSetStatus{Conditions: conditions}}},
		Routes: []*gateway.RouteStatus{{
			Kind: gateway.KindHTTPRoute, NamespacedName: routeName,
			Parents: []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), conditions...)},
		}},
	}
}

func get[T client.Object](t *testing.T, c client.Reader, name types.NamespacedName, object T) T {
	t.Helper()
	if err := c.Get(t.Context(), name, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func wantCalls(t *testing.T, name string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", name, got, want)
	}
}

func conflict(object client.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(object)}, object.GetName(), errors.New("changed"))
}

func TestWriteUpdatesTheGatewayLast(t *testing.T) {
	cluster := newFakeCluster(t)
	if err := cluster.writer.Write(t.Context(), owner, report(), nil); err != nil {
		t.Fatal(err)
	}
	cluster.wantAttempts(t, "HTTPRoute", "ListenerSet", "Gateway")
	want := []metav1.Condition{at(now, condition("Accepted", isTrue, 2))}
	for kind, got := range map[string][]metav1.Condition{
		"Gateway":     get(t, cluster.server, gatewayName, &gatewayv1.Gateway{}).Status.Conditions,
		"ListenerSet": get(t, cluster.server, setName, &gatewayv1.ListenerSet{}).Status.Conditions,
		"HTTPRoute":   get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{}).Status.Parents[0].Conditions,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: conditions differ (-want +got):\n%s", kind, diff)
		}
	}
}

func TestWriteAttachedDoesNotUpdateTheGateway(t *testing.T) {
	cluster := newFakeCluster(t)
	if err := cluster.writer.WriteAttached(t.Context(), owner, report()); err != nil {
		t.Fatal(err)
	}
	cluster.wantAttempts(t, "HTTPRoute", "ListenerSet")
}

func TestWriteSkipsUnchangedStatuses(t *testing.T) {
	cluster := newFakeCluster(t)
	for range 2 {
		cluster.writes = nil
		if err := cluster.writer.Write(t.Context(), owner, report(), nil); err != nil {
			t.Fatal(err)
		}
		cluster.writer.Now = func() time.Time { return now.Add(time.Hour) }
	}
	wantCalls(t, "written by the second call", cluster.writes)
	wantCalls(t, "read from the API server", cluster.liveReads)
}

func TestWriteReadsFromTheAPIServerAfterAConflict(t *testing.T) {
	// The cache is outdated: another controller has added a condition, which must
	// remain.
	cluster := newFakeCluster(t)
	stale := get(t, cluster.server, gatewayName, &gatewayv1.Gateway{})
	cluster.cached = stale.DeepCopy()
	other := at(before, condition("example.com/Audited", isTrue, 2))
	stale.Status.Conditions = []metav1.Condition{other}
	if err := cluster.server.Status().Update(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	if err := cluster.writer.Write(t.Context(), owner, report(), nil); err != nil {
		t.Fatal(err)
	}
	cluster.wantAttempts(t, "HTTPRoute", "ListenerSet", "Gateway", "Gateway")
	wantCalls(t, "read from the API server", cluster.liveReads, "Gateway")
	got := get(t, cluster.server, gatewayName, &gatewayv1.Gateway{}).Status.Conditions
	if diff := cmp.Diff([]metav1.Condition{other, at(now, condition("Accepted", isTrue, 2))}, got); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
}

func TestWriteFailsAfterRepeatedConflicts(t *testing.T) {
	cluster := newFakeCluster(t)
	cluster.updateError = conflict
	err := cluster.writer.WriteAttached(t.Context(), owner, report())
	if !apierrors.IsConflict(err) {
		t.Fatalf("WriteAttached returned %v, want a conflict", err)
	}
	if !strings.Contains(err.Error(), "after repeated conflicts") || !strings.HasSuffix(err.Error(), "and 1 more") || cluster.unwritten != 2 {
		t.Errorf("got error %q and %d unwritten statuses, want an error about two statuses", err, cluster.unwritten)
	}
}

func TestWriteIgnoresDeletedObjects(t *testing.T) {
	t.Run("before it is read", func(t *testing.T) {
		cluster := newFakeCluster(t)
		for _, object := range []client.Object{
			named(&gatewayv1.Gateway{}, gatewayName), named(&gatewayv1.ListenerSet{}, setName), named(&gatewayv1.HTTPRoute{}, routeName),
		} {
			if err := cluster.server.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if err := cluster.writer.Write(t.Context(), owner, report(), nil); err != nil {
			t.Errorf("Write returned %v, want no error", err)
		}
		wantCalls(t, "written", cluster.writes)
	})
	t.Run("before it is written", func(t *testing.T) {
		cluster := newFakeCluster(t)
		cluster.updateError = func(o client.Object) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: kindOf(o)}, o.GetName())
		}
		if err := cluster.writer.Write(t.Context(), owner, report(), nil); err != nil {
			t.Errorf("Write returned %v, want no error", err)
		}
		cluster.wantAttempts(t, "HTTPRoute", "ListenerSet", "Gateway")
	})
}

func TestWriteContinuesAfterAnError(t *testing.T) {
	errForbidden := errors.New("forbidden")
	cluster := newFakeCluster(t)
	cluster.updateError = func(o client.Object) error {
		if kindOf(o) == gateway.KindListenerSet {
			return errForbidden
		}
		return nil
	}
	err := cluster.writer.Write(t.Context(), owner, report(), nil)
	if !errors.Is(err, errForbidden) || !strings.Contains(err.Error(), setName.String()) {
		t.Errorf("Write returned %v, want %v for %s", err, errForbidden, setName)
	}
	cluster.wantAttempts(t, "HTTPRoute", "ListenerSet", "Gateway")
}

func TestWriteSkipsRecreatedObjects(t *testing.T) {
	// A route was deleted and recreated between reading and writing. The report about the
	// old route does not apply to the new route, and conditions with the old generation
	// would block later updates.
	cluster := newFakeCluster(t)
	old := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{})
	if err := cluster.server.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	recreated := named(&gatewayv1.HTTPRoute{Spec: old.Spec}, routeName)
	recreated.Generation = 1
	if err := cluster.server.Create(t.Context(), recreated); err != nil {
		t.Fatal(err)
	}
	if err := cluster.writer.Write(t.Context(), owner, report(), nil); err != nil {
		t.Fatal(err)
	}
	route := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{})
	for _, parent := range route.Status.Parents {
		for _, c := range parent.Conditions {
			if c.ObservedGeneration > route.Generation {
				t.Errorf("condition %s has observedGeneration %d, but the generation of the route is %d", c.Type, c.ObservedGeneration, route.Generation)
			}
		}
	}
}

func TestWriteClassUpdatesTheStatusOnce(t *testing.T) {
	cluster := newFakeCluster(t)
	class := named(&gatewayv1.GatewayClass{}, types.NamespacedName{Name: "tunnel"})
	if err := cluster.server.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	desired := gatewayv1.GatewayClassStatus{
		Conditions:        []metav1.Condition{condition("Accepted", isTrue, 2)},
		SupportedFeatures: []gatewayv1.SupportedFeature{{Name: "Gateway"}},
	}
	for range 2 {
		if err := cluster.writer.WriteClass(t.Context(), "tunnel", desired); err != nil {
			t.Fatal(err)
		}
	}
	wantCalls(t, "written", cluster.writes, "GatewayClass")
	got := get(t, cluster.server, types.NamespacedName{Name: "tunnel"}, &gatewayv1.GatewayClass{}).Status
	if !meta.IsStatusConditionTrue(got.Conditions, "Accepted") || len(got.SupportedFeatures) != 1 {
		t.Errorf("got status %+v, want Accepted=True and one feature", got)
	}
	if err := cluster.writer.WriteClass(t.Context(), "missing", desired); err != nil {
		t.Errorf("WriteClass returned %v for a class that does not exist, want no error", err)
	}
}
