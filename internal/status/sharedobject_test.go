package status_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// sharedObjects reads like the cache with UnsafeDisableDeepCopy: what the object refers to
// belongs to the cache.
type sharedObjects struct {
	route  *gatewayv1.HTTPRoute
	shared int
}

func (s *sharedObjects) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	var options client.GetOptions
	options.ApplyOptions(opts)
	route, ok := object.(*gatewayv1.HTTPRoute)
	if !ok || options.UnsafeDisableDeepCopy == nil || !*options.UnsafeDisableDeepCopy {
		return c.Get(ctx, key, object)
	}
	s.shared++
	*route = *s.route
	return nil
}

// Thousands of statuses are compared in each reconcile, so the comparison does not copy
// the objects in the cache, and must not change them.
func TestComparingStatusesDoesNotChangeTheCache(t *testing.T) {
	cluster := newFakeCluster(t)
	route := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{})
	other := condition("example.com/Audited", isTrue, 2)
	route.Status.Parents = []gatewayv1.RouteParentStatus{
		entry("example.com/other", ref("g"), at(before, other)),
		entry(controllerName, ref("g"), at(before, condition("Accepted", isFalse, 1)), at(before, other), at(before, condition("PartiallyInvalid", isTrue, 1))),
	}
	if err := cluster.server.Status().Update(t.Context(), route); err != nil {
		t.Fatal(err)
	}
	cached := sharedObjects{route: get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{})}
	want := cached.route.DeepCopy()
	cluster.writer.Client = interceptor.NewClient(cluster.server, interceptor.Funcs{Get: cached.get, SubResourceUpdate: cluster.update})
	if err := cluster.writer.Write(t.Context(), owner, report(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, cached.route); diff != "" || cached.shared == 0 {
		t.Errorf("%d shared reads, the object in the cache differs (-want +got):\n%s", cached.shared, diff)
	}
	written := get(t, cluster.server, routeName, &gatewayv1.HTTPRoute{}).Status.Parents
	wantConditions := []metav1.Condition{at(now, condition("Accepted", isTrue, 2)), at(before, other)}
	if diff := cmp.Diff([]gatewayv1.RouteParentStatus{want.Status.Parents[0], entry(controllerName, ref("g"), wantConditions...)}, written); diff != "" {
		t.Errorf("the written entries differ (-want +got):\n%s", diff)
	}
}

// A status that is up to date costs no memory.
func TestMergingAnEqualStatusAllocatesLittle(t *testing.T) {
	conditions := []metav1.Condition{at(before, condition("Accepted", isTrue, 2)), at(before, condition("ResolvedRefs", isTrue, 2))}
	var parents []gatewayv1.RouteParentStatus
	var spec []gatewayv1.ParentReference
	for range 32 {
		spec = append(spec, ref("g"))
		parents = append(parents, entry(controllerName, ref("g"), conditions...))
	}
	// Comparing the result takes a few allocations for each entry.
	if allocations := testing.AllocsPerRun(10, func() { mergeRoute(parents, spec, parents...) }); allocations > 5*float64(len(parents)) {
		t.Errorf("the comparison allocates %v times, want at most 5 for each of %d entries", allocations, len(parents))
	}
}
