package state_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// A Reload after random events finds the same as a Load, whenever the events arrive.
func TestReloadFindsWhatLoadFinds(t *testing.T) {
	const seeds, steps = 5, 40
	updates := 0
	for seed := range uint64(seeds) {
		w := newEventWorld(seed)
		for range steps {
			for range 1 + w.IntN(3) {
				w.change()
			}
			if w.IntN(4) == 0 {
				w.reload(t) // before the events of some changes
			}
			w.deliver()
			if w.reload(t).Changed != nil {
				updates++
			}
			w.compare(t, seed)
		}
	}
	if updates < seeds*steps/4 {
		t.Errorf("%d of %d times, only changed objects were read; the test says too little", updates, seeds*steps)
	}
}

// eventWorld is a cluster whose objects change at random, and the events that have not
// arrived.
type eventWorld struct {
	*rand.Rand
	objects  map[string]client.Object
	pending  []client.Object
	version  int
	changes  *state.Changes
	previous state.Previous
}

func newEventWorld(seed uint64) *eventWorld {
	w := &eventWorld{Rand: rand.New(rand.NewPCG(seed, 42)), objects: map[string]client.Object{}, changes: &state.Changes{}} // #nosec G404 -- not a secret
	w.put(&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName}})
	for i := range 3 {
		w.put(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespaceAt(i)}})
	}
	w.put(w.gateway("g0"))
	for range 60 {
		w.change()
	}
	return w
}

func (w *eventWorld) namespaceAt(i int) string { return "ns" + strconv.Itoa(i) }
func (w *eventWorld) namespace() string        { return w.namespaceAt(w.IntN(3)) }
func (w *eventWorld) name() string             { return "n" + strconv.Itoa(w.IntN(4)) }

// one returns one of the values.
func one[T any](w *eventWorld, values ...T) T { return values[w.IntN(len(values))] }

// put creates or replaces an object.
func (w *eventWorld) put(object client.Object) {
	key := fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
	w.version++
	object.SetResourceVersion(strconv.Itoa(w.version))
	object.SetUID(types.UID("u" + strconv.Itoa(w.version)))
	object.SetGeneration(1)
	if before := w.objects[key]; before != nil {
		object.SetUID(before.GetUID())
		object.SetGeneration(before.GetGeneration() + 1)
		w.pending = append(w.pending, before)
	}
	w.objects[key] = object
	w.pending = append(w.pending, object)
}

// change changes one object: it replaces or deletes it, or writes its status.
func (w *eventWorld) change() {
	object := w.random()
	key := fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
	switch before := w.objects[key]; {
	case before != nil && w.IntN(4) == 0:
		delete(w.objects, key)
		w.pending = append(w.pending, before)
	case before != nil && w.IntN(2) == 0:
		w.writeStatus(key, before)
	default:
		w.put(object)
	}
}

// writeStatus replaces an object by one with another status.
func (w *eventWorld) writeStatus(key string, before client.Object) {
	object := before.DeepCopyObject().(client.Object)
	w.version++
	object.SetResourceVersion(strconv.Itoa(w.version))
	entry := gatewayv1.RouteParentStatus{ControllerName: controllerName, ParentRef: w.parent()}
	ancestor := gatewayv1.PolicyAncestorStatus{ControllerName: controllerName, AncestorRef: w.parent()}
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		o.Status.Parents = []gatewayv1.RouteParentStatus{entry}
	case *gatewayv1.GRPCRoute:
		o.Status.Parents = []gatewayv1.RouteParentStatus{entry}
	case *gatewayv1.BackendTLSPolicy:
		o.Status.Ancestors = []gatewayv1.PolicyAncestorStatus{ancestor}
	case *v1alpha1.AccessPolicy:
		o.Status.Ancestors = []gatewayv1.PolicyAncestorStatus{ancestor}
	}
	w.objects[key] = object
	w.pending = append(w.pending, before, object)
}

// random returns a random object. Routes are the most frequent.
func (w *eventWorld) random() client.Object {
	meta := metav1.ObjectMeta{Namespace: w.namespace(), Name: w.name()}
	switch w.IntN(20) {
	case 0:
		return w.gateway(one(w, "g0", "g1"))
	case 1:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace, Labels: map[string]string{"team": w.name()}}}
	case 2:
		return &gatewayv1.ListenerSet{ObjectMeta: meta, Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Namespace: new(gatewayv1.Namespace("ns0")), Name: one(w, gatewayv1.ObjectName("g0"), "g1")},
			Listeners: []gatewayv1.ListenerEntry{{Name: "a", Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		}}
	case 3:
		return &gatewayv1beta1.ReferenceGrant{ObjectMeta: meta}
	case 4:
		return w.backendTLSPolicy(meta)
	case 5:
		return &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"ca.crt": w.name()}}
	case 6:
		policy := &v1alpha1.AccessPolicy{ObjectMeta: meta}
		policy.Spec.TargetRefs = append(policy.Spec.TargetRefs, one(w, accessTarget("Gateway", "g0"), accessTarget("ListenerSet", w.name())))
		return policy
	case 7, 8, 9:
		service := &corev1.Service{ObjectMeta: meta}
		service.Spec.ClusterIP, service.Spec.Ports = w.name(), []corev1.ServicePort{{Name: w.name(), Port: 80}}
		return service
	case 10, 11, 12:
		return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: meta.Namespace, Name: meta.Name, Labels: map[string]string{discoveryv1.LabelServiceName: w.name()},
		}}
	case 13, 14:
		route := &gatewayv1.GRPCRoute{ObjectMeta: meta}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{w.parent()}
		route.Spec.Rules = []gatewayv1.GRPCRouteRule{{BackendRefs: []gatewayv1.GRPCBackendRef{{BackendRef: w.backend()}}}}
		return route
	default:
		route := &gatewayv1.HTTPRoute{ObjectMeta: meta}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{w.parent()}
		route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: w.backend()}, {BackendRef: w.backend()}}}}
		return route
	}
}

// backendTLSPolicy returns a policy for a Service or one of its ports.
func (w *eventWorld) backendTLSPolicy(meta metav1.ObjectMeta) client.Object {
	policy := &gatewayv1.BackendTLSPolicy{ObjectMeta: meta}
	target := gatewayv1.LocalPolicyTargetReferenceWithSectionName{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: gatewayv1.ObjectName(w.name())}}
	if w.IntN(2) == 0 {
		target.SectionName = new(gatewayv1.SectionName(w.name()))
	}
	policy.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{target}
	policy.Spec.Validation.CACertificateRefs = []gatewayv1.LocalObjectReference{{Kind: "ConfigMap", Name: gatewayv1.ObjectName(w.name())}}
	return policy
}

func accessTarget(kind, name string) gatewayv1.LocalPolicyTargetReferenceWithSectionName {
	return gatewayv1.LocalPolicyTargetReferenceWithSectionName{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
		Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(kind), Name: gatewayv1.ObjectName(name),
	}}
}

func (w *eventWorld) gateway(name string) *gatewayv1.Gateway {
	from := one(w, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromSame)
	return &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns0", Name: name}, Spec: gatewayv1.GatewaySpec{
		GatewayClassName: "tunnel",
		AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}},
		Listeners: []gatewayv1.Listener{{
			Name: "a", Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &from}},
		}},
	}}
}

func (w *eventWorld) parent() gatewayv1.ParentReference {
	if w.IntN(3) == 0 {
		return gatewayv1.ParentReference{Kind: new(gatewayv1.Kind("ListenerSet")), Namespace: new(gatewayv1.Namespace(w.namespace())), Name: gatewayv1.ObjectName(w.name())}
	}
	return gatewayv1.ParentReference{Namespace: new(gatewayv1.Namespace("ns0")), Name: one(w, gatewayv1.ObjectName("g0"), "g0", "g1", "missing")}
}

func (w *eventWorld) backend() gatewayv1.BackendRef {
	return gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
		Namespace: new(gatewayv1.Namespace(w.namespace())), Name: gatewayv1.ObjectName(w.name()), Port: new(gatewayv1.PortNumber(80)),
	}}
}

// deliver records the pending events, each object's in any order.
func (w *eventWorld) deliver() {
	w.Shuffle(len(w.pending), func(i, j int) { w.pending[i], w.pending[j] = w.pending[j], w.pending[i] })
	for _, object := range w.pending {
		w.changes.Record(object)
	}
	w.pending = nil
}

func (w *eventWorld) loader(t *testing.T) state.Loader {
	t.Helper()
	reader, err := state.NewMemory(slices.Collect(maps.Values(w.objects)), state.Indexes(controllerName))
	if err != nil {
		t.Fatal(err)
	}
	loader := newLoader(reader)
	loader.Changes = w.changes
	return loader
}

var worldKey = state.GatewayKey("ns0", "g0")

func (w *eventWorld) reload(t *testing.T) *state.Loaded {
	t.Helper()
	loaded, err := w.loader(t).Reload(t.Context(), worldKey, &w.previous)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// compare compares a Reload with a Load. No event is pending.
func (w *eventWorld) compare(t *testing.T, seed uint64) {
	t.Helper()
	want, err := w.loader(t).Load(t.Context(), worldKey)
	if err != nil {
		t.Fatal(err)
	}
	got := w.reload(t)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(state.Loaded{}, "Changed"),
		cmpopts.IgnoreFields(gateway.Snapshot{}, "Access"), cmpopts.EquateComparable(netip.Addr{}), valuesOf[*corev1.Service](), valuesOf[[]*discoveryv1.EndpointSlice](), sortObjects); diff != "" {
		t.Fatalf("seed %d: Reload differs from Load (-load +reload):\n%s", seed, diff)
	}
}

var sortObjects = cmp.Options{
	sortByName[*gatewayv1.HTTPRoute](), sortByName[*gatewayv1.GRPCRoute](), sortByName[*gatewayv1.ListenerSet](), sortByName[*discoveryv1.EndpointSlice](),
	sortByName[*gatewayv1beta1.ReferenceGrant](), sortByName[*gatewayv1.BackendTLSPolicy](), sortByName[*v1alpha1.AccessPolicy](),
}

func valuesOf[V any]() cmp.Option {
	return cmp.Transformer("values", func(m byname.Map[V]) map[types.NamespacedName]V { return maps.Collect(m.All()) })
}

func sortByName[T client.Object]() cmp.Option {
	return cmpopts.SortSlices(func(a, b T) bool {
		return client.ObjectKeyFromObject(a).String() < client.ObjectKeyFromObject(b).String()
	})
}

// Decisions recognize an object that has not changed by its address.
func TestReloadKeepsUnchangedObjects(t *testing.T) {
	w := newEventWorld(1)
	route := func(name string) *gatewayv1.HTTPRoute {
		r := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: "ns0", Name: name}}
		r.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: "g0"}}
		return r
	}
	w.put(route("x1"))
	w.put(route("x2"))
	w.deliver()
	before := w.reload(t).Snapshot.HTTPRoutes
	w.put(route("x2"))
	w.deliver()
	changed := w.reload(t)
	w.put(w.objects["*v1.Namespace /ns0"].DeepCopyObject().(*corev1.Namespace)) // another UID loads everything
	w.changes.Record(&gatewayv1beta1.ReferenceGrant{})
	w.deliver()
	everything := w.reload(t)
	for _, after := range [][]*gatewayv1.HTTPRoute{changed.Snapshot.HTTPRoutes, everything.Snapshot.HTTPRoutes} {
		for i, r := range after {
			if kept := before[i] == r; kept != (r.Name != "x2") {
				t.Errorf("route %s: is the address kept: %t", r.Name, kept)
			}
		}
	}
	if x2 := (gateway.Owner{Kind: gateway.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "ns0", Name: "x2"}}); len(changed.Changed) != 1 || !changed.Changed[x2] {
		t.Errorf("changed: %v, want only %v", changed.Changed, x2)
	}
}
