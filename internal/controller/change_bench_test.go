package controller

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// BenchmarkChange reconciles a Gateway after one of its routes has changed. Each route has
// one hostname and a Service of its own. The controller reads from a real cache; the
// simulated API server adds to the cost of writes, and Envoy's configuration is not sent.
func BenchmarkChange(b *testing.B) {
	for _, plane := range []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy} {
		for _, routes := range []int{10, 900, 10_000, 50_000} {
			for _, c := range routeChanges {
				b.Run(fmt.Sprintf("%s/%s/routes=%d", plane, c.field, routes), func(b *testing.B) { benchmarkChange(b, plane, routes, c) })
			}
		}
	}
}

// routeChange gives a field of a route's first rule the nth value. name is the name of the route.
type routeChange struct {
	field  string
	change func(rule *gatewayv1.HTTPRouteRule, name string, n int)
}

var routeChanges = []routeChange{
	{"backend", func(rule *gatewayv1.HTTPRouteRule, name string, n int) {
		// Every other time, no route refers to the Service with the route's name.
		rule.BackendRefs[0].Name = gatewayv1.ObjectName([]string{routeName(0), name}[n%2])
	}},
	{"match", func(rule *gatewayv1.HTTPRouteRule, _ string, n int) {
		rule.Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{
			Type: ptr.To(gatewayv1.PathMatchExact), Value: ptr.To(fmt.Sprintf("/%d", n)),
		}}}
	}},
}

func benchmarkChange(b *testing.B, plane v1alpha1.DataPlane, routes int, c routeChange) {
	h := newLargeHarness(b, plane, routes)
	b.ReportAllocs()
	h.reconcileChanges(b, "infra", routeName(routes/2), func(route *gatewayv1.HTTPRoute, n int) { c.change(&route.Spec.Rules[0], route.Name, n) })
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// reconcileChanges changes the route again and again, and measures the reconcile after each
// change.
func (h *harness) reconcileChanges(b *testing.B, namespace, name string, change func(route *gatewayv1.HTTPRoute, n int)) {
	b.Helper()
	changed := &gatewayv1.HTTPRoute{}
	var used time.Duration
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		h.change(namespace, name, changed, func() {
			changed.Generation++
			change(changed, n)
		})
		h.waitForCache(changed)
		h.advance(driftInterval / 100)
		h.cloud.ResetCalls()
		h.xds.publications = nil
		b.StartTimer()
		before := processorTime(b)
		h.reconcileOnce()
		used += processorTime(b) - before
		b.StopTimer()
		h.waitForCache(changed)
		h.waitForCache(h.tunnelObject())
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Microseconds())/1000/float64(b.N), "cpu-ms/op")
}

// processorTime returns how much processor time the process has used.
func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// newLargeHarness returns a harness with a cache and a Gateway with many routes, all of
// whose statuses are written.
func newLargeHarness(b testing.TB, plane v1alpha1.DataPlane, routes int) *harness {
	b.Helper()
	log.SetLogger(logr.Discard())
	var objects []client.Object
	for i := range routes {
		route := newRoute()
		route.Name = routeName(i)
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(route.Name + ".example.com")}
		route.Spec.Rules[0].BackendRefs[0].Name = gatewayv1.ObjectName(route.Name)
		service := newService()
		service.Name = route.Name
		slice := &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "infra", Name: route.Name, Labels: map[string]string{discoveryv1.LabelServiceName: route.Name}},
			AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}},
			Ports: []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To[int32](80)}},
		}
		objects = append(objects, route, service, slice)
	}
	h := newHarness(b, objects...)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		if plane == v1alpha1.DataPlaneEnvoy {
			s.Connector = nil
		}
		s.DataPlane, s.Limits = ptr.To(plane), &v1alpha1.Limits{RulesPerTunnel: ptr.To[int32](100_000)}
	})
	h.setHostname("*.example.com")
	h.useCache()
	for range 3 {
		h.reconcileQueued()
		h.reconcileOnce()
		h.advance(driftInterval / 100)
	}
	runtime.GC()
	return h
}

func routeName(i int) string { return fmt.Sprintf("r%05d", i) }
