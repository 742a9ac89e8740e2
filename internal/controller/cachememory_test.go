package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// hostileObjects is how many objects one namespace creates. A part is measured, because
// each object needs the same memory.
const hostileObjects, measuredObjects = 6000, 300

// hostileName is the first object's name.
const hostileName = "object-0"

// A namespace that no Gateway admits cannot exhaust the controller's memory, nor fill
// etcd, with many objects that get a large status.
func TestHostileObjectsCostLittle(t *testing.T) {
	for _, test := range []struct {
		name     string
		manifest func() client.Object
		// Limits for the memory that all objects need, and for one object's status.
		memory, status int
	}{
		{"ListenerSets that are not allowed", hostileListenerSet, 60 << 20, 1 << 10},
		{"routes with 32 parents", hostileRoute, 250 << 20, 8<<10 + 32<<10 + 32*200},
	} {
		t.Run(test.name, func(t *testing.T) {
			object := test.manifest()
			report(t, object)
			var fields struct{ Status json.RawMessage }
			text := encode(t, object)
			if err := json.Unmarshal(text, &fields); err != nil {
				t.Fatal(err)
			}
			memory := (heapOf(t, object, text, measuredObjects) - heapOf(t, object, text, 1)) * hostileObjects / measuredObjects
			t.Logf("%d bytes of status, %d MiB of memory for %d objects", len(fields.Status), memory>>20, hostileObjects)
			if memory > test.memory || len(fields.Status) > test.status {
				t.Errorf("want at most %d bytes of status and %d MiB of memory", test.status, test.memory>>20)
			}
		})
	}
}

// hostileListenerSet returns a ListenerSet with as many listeners as possible.
func hostileListenerSet() client.Object {
	set := &gatewayv1.ListenerSet{ObjectMeta: hostileMetadata(), Spec: gatewayv1.ListenerSetSpec{
		ParentRef: gatewayv1.ParentGatewayReference{Namespace: new(gatewayv1.Namespace("infra")), Name: "shared"},
	}}
	for l := range 64 {
		set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry{
			Name: gatewayv1.SectionName(fmt.Sprintf("l%d", l)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromSame)}},
		})
	}
	return set
}

// hostileRoute returns a route with as many parents as possible, and backends that do
// not exist.
func hostileRoute() client.Object {
	route := &gatewayv1.HTTPRoute{ObjectMeta: hostileMetadata()}
	for p := range 32 {
		route.Spec.ParentRefs = append(route.Spec.ParentRefs, gatewayv1.ParentReference{
			Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind(gateway.KindGateway)),
			Namespace: new(gatewayv1.Namespace("infra")), Name: "shared", SectionName: new(gatewayv1.SectionName(fmt.Sprintf("l%d", p))),
		})
	}
	for range 4 {
		rule := gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: new("/")}}}}
		for b := range 16 {
			rule.BackendRefs = append(rule.BackendRefs, gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{
					Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")), Name: gatewayv1.ObjectName(fmt.Sprintf("missing-%d", b)), Port: new(gatewayv1.PortNumber(80)),
				},
				Weight: new(int32(1)),
			}})
		}
		route.Spec.Rules = append(route.Spec.Rules, rule)
	}
	return route
}

// hostileMetadata returns metadata as the API server stores it after kubectl apply.
func hostileMetadata() metav1.ObjectMeta {
	fields := metav1.NewFieldsV1(`{"f:spec":{` + strings.Repeat(`"f:listeners":{},`, 300) + `"f:rules":{}}}`)
	return metav1.ObjectMeta{
		Namespace: "hostile", Name: hostileName, UID: "5b7c0a52-7a0d-4f6e-9a5c-2f4a1b1c8d11", ResourceVersion: "123456", Generation: 1,
		CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0)),
		ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: fields}},
		Annotations:       map[string]string{corev1.LastAppliedConfigAnnotation: strings.Repeat("x", 2800)},
	}
}

// platformObjects returns a Gateway that admits only its own namespace.
func platformObjects() []client.Object {
	g := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared", Generation: 1}, Spec: gatewayv1.GatewaySpec{GatewayClassName: "tunnel"}}
	for l := range 32 {
		g.Spec.Listeners = append(g.Spec.Listeners, gatewayv1.Listener{
			Name: gatewayv1.SectionName(fmt.Sprintf("l%d", l)), Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: new(gatewayv1.Hostname(fmt.Sprintf("l%d.example.com", l))),
		})
	}
	return []client.Object{
		&gatewayv1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: "tunnel"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: controllerName}}, g,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "infra"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "hostile"}},
	}
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// report gives the object the status that the controller writes.
func report(t *testing.T, object client.Object) {
	t.Helper()
	reader, err := state.NewMemory(append(platformObjects(), object), state.Indexes(controllerName))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := state.Loader{Reader: reader, CABundles: state.DirectCABundles{Reader: reader}, ControllerName: controllerName, ControllerNamespace: controllerNamespace}.Load(t.Context(), state.GatewayKey("infra", "shared"))
	if err != nil {
		t.Fatal(err)
	}
	report := gateway.Build(loaded.Snapshot, gateway.Options{ControllerName: controllerName, DataPlanes: decision.DataPlanes()}).Report(gateway.Outcome{})
	now := metav1.NewTime(time.Unix(1e9, 0))
	switch o := object.(type) {
	case *gatewayv1.ListenerSet:
		o.Status, _ = status.MergeListenerSet(o.Status, report.ListenerSets[0].Status, now)
	case *gatewayv1.HTTPRoute:
		o.Status.Parents, _ = status.MergeRoute(nil, o.Spec.ParentRefs, report.Routes[0], report.Owners, controllerName, now)
	}
}

// heapOf returns how much memory n objects like the encoded one need in a cache with
// the controller's indexes.
func heapOf(t *testing.T, kind client.Object, encoded []byte, n int) int {
	t.Helper()
	before := heapInUse()
	objects := make([]client.Object, n)
	for i := range objects {
		text := bytes.ReplaceAll(encoded, []byte(hostileName), fmt.Appendf(nil, "object-%d", i))
		object := reflect.New(reflect.TypeOf(kind).Elem()).Interface()
		if err := json.Unmarshal(text, object); err != nil {
			t.Fatal(err)
		}
		if _, err := compact(object); err != nil {
			t.Fatal(err)
		}
		objects[i] = object.(client.Object)
	}
	reader, err := state.NewMemory(objects, state.Indexes(controllerName))
	if err != nil {
		t.Fatal(err)
	}
	clear(objects)
	used := heapInUse() - before
	runtime.KeepAlive(reader)
	return used
}

func heapInUse() int {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // G115: far below the maximum
}
