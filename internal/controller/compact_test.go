package controller

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// statusesOfSeveralControllers returns objects whose statuses contain entries and
// conditions from other controllers, and many equal values.
func statusesOfSeveralControllers() []client.Object {
	conditions := func(i int) []metav1.Condition {
		now := metav1.NewTime(time.Unix(1e9, 0))
		return []metav1.Condition{
			{Type: "Accepted", Status: metav1.ConditionTrue, Reason: "Accepted", Message: fmt.Sprint("message ", i%3), LastTransitionTime: now, ObservedGeneration: int64(i % 2)},
			{Type: "example.com/Audited", Status: metav1.ConditionFalse, Reason: "Audited", Message: fmt.Sprint("message ", i), LastTransitionTime: now},
		}
	}
	route, set := hostileRoute().(*gatewayv1.HTTPRoute), hostileListenerSet().(*gatewayv1.ListenerSet)
	for i, ref := range route.Spec.ParentRefs {
		route.Status.Parents = append(route.Status.Parents,
			gatewayv1.RouteParentStatus{ParentRef: ref, ControllerName: controllerName, Conditions: conditions(i)[:1]},
			gatewayv1.RouteParentStatus{ParentRef: ref, ControllerName: "example.com/other", Conditions: conditions(i)})
	}
	g := &gatewayv1.Gateway{ObjectMeta: hostileMetadata()}
	for i, l := range set.Spec.Listeners {
		kinds := []gatewayv1.RouteGroupKind{{Kind: "HTTPRoute"}, {Kind: "GRPCRoute"}}[:i%3]
		set.Spec.Listeners[i].AllowedRoutes.Kinds = kinds
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener(set.Spec.Listeners[i]))
		set.Status.Listeners = append(set.Status.Listeners, gatewayv1.ListenerEntryStatus{Name: l.Name, SupportedKinds: kinds, Conditions: conditions(i)})
		g.Status.Listeners = append(g.Status.Listeners, gatewayv1.ListenerStatus(set.Status.Listeners[i]))
	}
	return []client.Object{route, set, g, &corev1.Service{ObjectMeta: hostileMetadata(), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}}
}

// If the cache dropped a part of a status, a status write would erase it.
func TestTheCacheDropsOnlyWhatNoDecisionReads(t *testing.T) {
	for _, object := range statusesOfSeveralControllers() {
		want := object.DeepCopyObject().(client.Object)
		want.SetManagedFields(nil)
		want.SetAnnotations(nil)
		if _, isGateway := object.(*gatewayv1.Gateway); isGateway {
			want.SetAnnotations(map[string]string{})
		}
		if _, err := compact(object); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, object) {
			t.Errorf("%T differs (-want +got):\n%s", object, cmp.Diff(want, object))
		}
	}
	if tombstone, err := compact("a tombstone"); tombstone != "a tombstone" || err != nil {
		t.Errorf("got %v and %v for a tombstone", tombstone, err)
	}
}

// The topology hints of a Service count, but not the size of their annotation.
func TestTheCacheKeepsTopologyHints(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
		corev1.AnnotationTopologyMode: strings.Repeat("x", 1000), "other": "value",
	}}}
	if _, err := compact(service); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{corev1.AnnotationTopologyMode: "Auto"}, service.Annotations); diff != "" {
		t.Errorf("the annotations differ (-want +got):\n%s", diff)
	}
}

// An object can have thousands of labels, annotations, finalizers and owners, but few
// count.
func TestTheCacheKeepsOnlyTheMetadataThatCounts(t *testing.T) {
	tunnel := metav1.OwnerReference{Kind: "Tunnel", Name: "infra.shared", Controller: new(true)}
	metadata := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "web", "other": "x"}, Annotations: map[string]string{"a": "b"},
			Finalizers: []string{"example.com/f"}, OwnerReferences: []metav1.OwnerReference{{Kind: "Other", Name: "o"}, tunnel},
		}
	}
	secret, definition := &metav1.PartialObjectMetadata{ObjectMeta: metadata()}, &metav1.PartialObjectMetadata{ObjectMeta: metadata()}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	reduced := func(labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: "a", Labels: labels, OwnerReferences: []metav1.OwnerReference{tunnel}}
	}
	for object, want := range map[client.Object]metav1.ObjectMeta{
		&gatewayv1.HTTPRoute{ObjectMeta: metadata()}: reduced(nil), &corev1.Service{ObjectMeta: metadata()}: reduced(nil), secret: reduced(nil),
		&discoveryv1.EndpointSlice{ObjectMeta: metadata()}: reduced(map[string]string{discoveryv1.LabelServiceName: "web"}),
		&corev1.Namespace{ObjectMeta: metadata()}:          metadata(), &gatewayv1.Gateway{ObjectMeta: metadata()}: metadata(), definition: metadata(),
	} {
		if _, err := compact(object); err != nil {
			t.Fatal(err)
		}
		got := metav1.ObjectMeta{
			Name: object.GetName(), Labels: object.GetLabels(), Annotations: object.GetAnnotations(), Finalizers: object.GetFinalizers(), OwnerReferences: object.GetOwnerReferences(),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T differs (-want +got):\n%s", object, diff)
		}
	}
}

func TestCachedWriteKeepsOtherControllersEntries(t *testing.T) {
	object := statusesOfSeveralControllers()[0].(*gatewayv1.HTTPRoute)
	want := object.DeepCopy().Status.Parents
	if _, err := compact(object); err != nil {
		t.Fatal(err)
	}
	// The report for a Gateway that the route no longer reaches removes the
	// controller's entries.
	owners := map[gateway.Owner]bool{{Kind: gateway.KindGateway, NamespacedName: client.ObjectKey{Namespace: "infra", Name: "shared"}}: true}
	desired := &gateway.RouteStatus{Kind: gateway.KindHTTPRoute, NamespacedName: client.ObjectKeyFromObject(object)}
	got, _ := status.MergeRoute(object.Status.Parents, object.Spec.ParentRefs, desired, owners, controllerName, metav1.Now())
	if len(got) != len(object.Spec.ParentRefs) {
		t.Fatalf("got %d entries, want those of the other controller", len(got))
	}
	for i := range got {
		if diff := cmp.Diff(want[2*i+1], got[i]); diff != "" {
			t.Errorf("entry %d differs (-want +got):\n%s", i, diff)
		}
	}
}
