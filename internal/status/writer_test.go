package status_test

import (
	"context"
	"errors"
	"slices"
	"strings"
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
	setName     = types.NamespacedName{Namespace: "team", Name: "set"}
	routeName   = types.NamespacedName{Namespace: "team", Name: "route"}
)

func named[T client.Object](object T, name types.NamespacedName) T {
	object.SetNamespace(name.Namespace)
	object.SetName(name.Name)
	object.SetGeneration(2)
	return object
}

// fakeCluster is an API server with a Gateway, a set and a route, and a record of
// the calls that a Writer makes to it.
type fakeCluster struct {
	server client.WithWatch
	writer *status.Writer
	// cached, when set, is the Gateway that the cache has.
	cached *gatewayv1.Gateway
	// updateError, when set, is asked before a status is written.
	updateError func(client.Object) error

	writes    []string
	liveReads []string
}

func newFakeCluster(t *testing.T) *fakeCluster {
	t.Helper()
	route := named(&gatewayv1.HTTPRoute{}, routeName)
	route.Spec.ParentRefs = []gatewayv1.ParentReference{ref("g")}
	kinds := []client.Object{&gatewayv1.GatewayClass{}, &gatewayv1.Gateway{}, &gatewayv1.ListenerSet{}, &gatewayv1.HTTPRoute{}}
	w := &fakeCluster{server: fake.NewClientBuilder().
		WithScheme(manifest.Scheme()).
		WithStatusSubresource(kinds...).
		WithObjects(named(&gatewayv1.Gateway{}, gatewayName), named(&gatewayv1.ListenerSet{}, setName), route).
		Build()}
	w.writer = &status.Writer{
		Client:         interceptor.NewClient(w.server, interceptor.Funcs{Get: w.readCache, SubResourceUpdate: w.update}),
		Live:           interceptor.NewClient(w.server, interceptor.Funcs{Get: w.readLive}),
		ControllerName: controllerName,
		Now:            func() time.Time { return now.Add(time.Millisecond) },
		Notify:         func(client.Object, status.Change) {},
	}
	return w
}

func (w *fakeCluster) readCache(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	if g, ok := into.(*gatewayv1.Gateway); ok && w.cached != nil {
		w.cached.DeepCopyInto(g)
		return nil
	}
	return c.Get(ctx, key, into, opts...)
}

func (w *fakeCluster) readLive(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	w.liveReads = append(w.liveReads, kindOf(into))
	return c.Get(ctx, key, into, opts...)
}

func (w *fakeCluster) update(ctx context.Context, c client.Client, resource string, object client.Object, opts ...client.SubResourceUpdateOption) error {
	w.writes = append(w.writes, kindOf(object))
	if w.updateError != nil {
		if err := w.updateError(object); err != nil {
			return err
		}
	}
	return c.SubResource(resource).Update(ctx, object, opts...)
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

// report says the same of every object, for the generation that the world has.
func report() gateway.Report {
	conditions := []metav1.Condition{condition("Accepted", isTrue, 2)}
	return gateway.Report{
		Gateway:      gatewayv1.GatewayStatus{Conditions: conditions},
		ListenerSets: []gateway.ListenerSetStatus{{NamespacedName: setName, Status: gatewayv1.ListenerSetStatus{Conditions: conditions}}},
		Routes: []gateway.RouteStatus{{
			Kind: gateway.KindHTTPRoute, NamespacedName: routeName,
			Parents: []gatewayv1.RouteParentStatus{entry(controllerName, ref("g"), conditions...)},
		}},
	}
}

func get[T client.Object](t *testing.T, c client.Reader, name types.NamespacedName, into T) T {
	t.Helper()
	if err := c.Get(t.Context(), name, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func wantCalls(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func conflict(object client.Object) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(object)}, object.GetName(), errors.New("changed"))
}

func TestWriteUpdatesTheGatewayLast(t *testing.T) {
	w := newFakeCluster(t)
	if err := w.writer.Write(t.Context(), gatewayName, report()); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, "written", w.writes, "ListenerSet", "HTTPRoute", "Gateway")
	want := []metav1.Condition{at(now, condition("Accepted", isTrue, 2))}
	for kind, got := range map[string][]metav1.Condition{
		"Gateway":     get(t, w.server, gatewayName, &gatewayv1.Gateway{}).Status.Conditions,
		"ListenerSet": get(t, w.server, setName, &gatewayv1.ListenerSet{}).Status.Conditions,
		"HTTPRoute":   get(t, w.server, routeName, &gatewayv1.HTTPRoute{}).Status.Parents[0].Conditions,
	} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conditions of the %s differ (-want +got):\n%s", kind, diff)
		}
	}
}

func TestWriteAttachedDoesNotUpdateTheGateway(t *testing.T) {
	w := newFakeCluster(t)
	if err := w.writer.WriteAttached(t.Context(), report()); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, "written", w.writes, "ListenerSet", "HTTPRoute")
}

func TestWriteSkipsUnchangedStatuses(t *testing.T) {
	w := newFakeCluster(t)
	for range 2 {
		w.writes = nil
		if err := w.writer.Write(t.Context(), gatewayName, report()); err != nil {
			t.Fatal(err)
		}
		w.writer.Now = func() time.Time { return now.Add(time.Hour) }
	}
	wantCalls(t, "written the second time", w.writes)
	wantCalls(t, "read from the API server", w.liveReads)
}

// The cache lags behind: somebody has added a condition, which must survive.
func TestWriteReadsFromTheAPIServerAfterAConflict(t *testing.T) {
	w := newFakeCluster(t)
	stale := get(t, w.server, gatewayName, &gatewayv1.Gateway{})
	w.cached = stale.DeepCopy()
	others := at(before, condition("example.com/Audited", isTrue, 2))
	stale.Status.Conditions = []metav1.Condition{others}
	if err := w.server.Status().Update(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	if err := w.writer.Write(t.Context(), gatewayName, report()); err != nil {
		t.Fatal(err)
	}
	wantCalls(t, "written", w.writes, "ListenerSet", "HTTPRoute", "Gateway", "Gateway")
	wantCalls(t, "read from the API server", w.liveReads, "Gateway")
	got := get(t, w.server, gatewayName, &gatewayv1.Gateway{}).Status.Conditions
	if diff := cmp.Diff([]metav1.Condition{others, at(now, condition("Accepted", isTrue, 2))}, got); diff != "" {
		t.Errorf("conditions differ (-want +got):\n%s", diff)
	}
}

func TestWriteFailsAfterRepeatedConflicts(t *testing.T) {
	w := newFakeCluster(t)
	w.updateError = conflict
	err := w.writer.WriteAttached(t.Context(), report())
	if !apierrors.IsConflict(err) {
		t.Fatalf("Write gave %v, want a conflict", err)
	}
	for _, name := range []string{setName.String(), routeName.String()} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not name %s", err, name)
		}
	}
}

func TestWriteIgnoresDeletedObjects(t *testing.T) {
	t.Run("before it is read", func(t *testing.T) {
		w := newFakeCluster(t)
		for _, object := range []client.Object{
			named(&gatewayv1.Gateway{}, gatewayName), named(&gatewayv1.ListenerSet{}, setName), named(&gatewayv1.HTTPRoute{}, routeName),
		} {
			if err := w.server.Delete(t.Context(), object); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.writer.Write(t.Context(), gatewayName, report()); err != nil {
			t.Errorf("Write gave %v", err)
		}
		wantCalls(t, "written", w.writes)
	})
	t.Run("before it is written", func(t *testing.T) {
		w := newFakeCluster(t)
		w.updateError = func(o client.Object) error {
			return apierrors.NewNotFound(schema.GroupResource{Resource: kindOf(o)}, o.GetName())
		}
		if err := w.writer.Write(t.Context(), gatewayName, report()); err != nil {
			t.Errorf("Write gave %v", err)
		}
		wantCalls(t, "written", w.writes, "ListenerSet", "HTTPRoute", "Gateway")
	})
}

func TestWriteContinuesAfterAnError(t *testing.T) {
	errForbidden := errors.New("forbidden")
	w := newFakeCluster(t)
	w.updateError = func(o client.Object) error {
		if kindOf(o) == gateway.KindListenerSet {
			return errForbidden
		}
		return nil
	}
	err := w.writer.Write(t.Context(), gatewayName, report())
	if !errors.Is(err, errForbidden) || !strings.Contains(err.Error(), setName.String()) {
		t.Errorf("Write gave %v, want %v of %s", err, errForbidden, setName)
	}
	wantCalls(t, "written", w.writes, "ListenerSet", "HTTPRoute", "Gateway")
}

// A route that was deleted and made again between reading and writing: what
// was decided about the old one says nothing about the new one, and a
// generation that the new one never had would keep every later answer out.
func TestWriteSkipsRecreatedObjects(t *testing.T) {
	w := newFakeCluster(t)
	again := get(t, w.server, routeName, &gatewayv1.HTTPRoute{})
	if err := w.server.Delete(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	again = named(&gatewayv1.HTTPRoute{Spec: again.Spec}, routeName)
	again.Generation = 1
	if err := w.server.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if err := w.writer.Write(t.Context(), gatewayName, report()); err != nil {
		t.Fatal(err)
	}
	route := get(t, w.server, routeName, &gatewayv1.HTTPRoute{})
	for _, parent := range route.Status.Parents {
		for _, c := range parent.Conditions {
			if c.ObservedGeneration > route.Generation {
				t.Errorf("%s has observedGeneration %d, the route's generation is %d", c.Type, c.ObservedGeneration, route.Generation)
			}
		}
	}
}

func TestWriteClass(t *testing.T) {
	w := newFakeCluster(t)
	class := named(&gatewayv1.GatewayClass{}, types.NamespacedName{Name: "tunnel"})
	if err := w.server.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	wanted := gatewayv1.GatewayClassStatus{
		Conditions:        []metav1.Condition{condition("Accepted", isTrue, 2)},
		SupportedFeatures: []gatewayv1.SupportedFeature{{Name: "Gateway"}},
	}
	for range 2 {
		if err := w.writer.WriteClass(t.Context(), "tunnel", wanted); err != nil {
			t.Fatal(err)
		}
	}
	wantCalls(t, "written", w.writes, "GatewayClass")
	got := get(t, w.server, types.NamespacedName{Name: "tunnel"}, &gatewayv1.GatewayClass{}).Status
	if !meta.IsStatusConditionTrue(got.Conditions, "Accepted") || len(got.SupportedFeatures) != 1 {
		t.Errorf("status = %+v", got)
	}
	if err := w.writer.WriteClass(t.Context(), "gone", wanted); err != nil {
		t.Errorf("WriteClass of a class that is gone gave %v", err)
	}
}
