package gateway_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// BenchmarkBuild measures Build for clusters in which each team has a namespace with a
// Service and a ListenerSet with two listeners, each with one route. The larger cluster
// has ten times as many teams. It must take less than 40 ms and 60 MB on a small machine
// with two cores, and less than eleven times as long as the smaller cluster.
func BenchmarkBuild(b *testing.B) {
	forEachSize(b, func(s *gateway.Snapshot) { rulesConfiguration(gateway.Build(s, randomOptions).Table) })
}

// BenchmarkBuildOneGroup measures Build for one listener with many routes, which the
// routing table has to sort.
func BenchmarkBuildOneGroup(b *testing.B) {
	s := routesSnapshot()
	setLimits(s, v1alpha1.Limits{RulesPerTunnel: new(int32(100000))})
	for i := range 10000 {
		route := httpRoute(routeMeta(fmt.Sprintf("route-%05d", i*7919%10000), time.Duration(i%97)*time.Hour), gatewayv1.HTTPRouteMatch{})
		route.Spec.Hostnames = []gatewayv1.Hostname{gatewayv1.Hostname(fmt.Sprintf("h%05d.example.com", i*7907%10000))}
		s.HTTPRoutes = append(s.HTTPRoutes, route)
	}
	b.ReportAllocs()
	for b.Loop() {
		rulesConfiguration(gateway.Build(s, randomOptions).Table)
	}
}

func BenchmarkBuildAndReport(b *testing.B) {
	forEachSize(b, func(s *gateway.Snapshot) { report(gateway.Build(s, randomOptions), s) })
}

func forEachSize(b *testing.B, run func(*gateway.Snapshot)) {
	for _, teams := range []int{500, 5000} {
		b.Run(fmt.Sprintf("listeners=%d", 2*teams), func(b *testing.B) {
			s := teamsSnapshot(teams)
			if usage := gateway.Build(s, options).Usage; usage.Rules < 2*teams {
				b.Fatalf("only %d rules", usage.Rules)
			}
			b.ReportAllocs()
			for b.Loop() {
				run(s)
			}
		})
	}
}

func teamsSnapshot(teams int) *gateway.Snapshot {
	s := &gateway.Snapshot{
		Now: dayOne,
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared", Generation: 1},
			Spec: gatewayv1.GatewaySpec{
				AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}},
			},
		},
		Namespaces: map[string]*corev1.Namespace{},
		Tunnel:     "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415",
	}
	setLimits(s, v1alpha1.Limits{RulesPerTunnel: new(int32(100000))})
	for i := range teams {
		addTeam(s, i, teams)
	}
	return s
}

func addTeam(s *gateway.Snapshot, i, teams int) {
	namespace := fmt.Sprintf("team-%04d", i)
	meta := func(name string) metav1.ObjectMeta {
		created := metav1.NewTime(dayOne.Add(time.Duration(i*7919%teams) * time.Minute)) // ordering by age differs from ordering by name
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, CreationTimestamp: created}
	}
	domain := namespace + ".example.com"
	s.Namespaces[namespace] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	s.Services.Set(types.NamespacedName{Namespace: namespace, Name: "web"}, &corev1.Service{
		ObjectMeta: meta("web"),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Port: 80}}},
	})
	s.ListenerSets = append(s.ListenerSets, &gatewayv1.ListenerSet{
		ObjectMeta: meta("listeners"),
		Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))},
			Listeners: []gatewayv1.ListenerEntry{teamListener("site", domain), teamListener("apps", "*."+domain)},
		},
	})
	s.HTTPRoutes = append(s.HTTPRoutes,
		&gatewayv1.HTTPRoute{ObjectMeta: meta("site"), Spec: teamRoute("site", "/")},
		&gatewayv1.HTTPRoute{ObjectMeta: meta("apps"), Spec: teamRoute("apps", "/api", gatewayv1.Hostname("app."+domain))},
	)
}

func teamListener(name, hostname string) gatewayv1.ListenerEntry {
	return gatewayv1.ListenerEntry{
		Name: gatewayv1.SectionName(name), Hostname: new(gatewayv1.Hostname(hostname)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromSame)}},
	}
}

func teamRoute(listener, path string, hostnames ...gatewayv1.Hostname) gatewayv1.HTTPRouteSpec {
	return gatewayv1.HTTPRouteSpec{
		CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{
			Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind(gateway.KindListenerSet)),
			Name: "listeners", SectionName: new(gatewayv1.SectionName(listener)),
		}}},
		Hostnames: hostnames,
		Rules: []gatewayv1.HTTPRouteRule{{
			Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: &path}}},
			BackendRefs: []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{
				BackendObjectReference: gatewayv1.BackendObjectReference{
					Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")), Name: "web", Port: new(gatewayv1.PortNumber(80)),
				},
				Weight: new(int32(1)),
			}}},
		}},
	}
}

func BenchmarkDNSHostnames(b *testing.B) {
	result := gateway.Build(teamsSnapshot(1000), options)
	for b.Loop() {
		if all := result.DNSHostnames(); len(all) < 2000 {
			b.Fatalf("%d hostnames", len(all))
		}
	}
}
