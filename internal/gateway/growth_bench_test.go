package gateway_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// growingClusters are clusters with n objects of the kind in the name.
var growingClusters = []growingCluster{
	{"mixed-kinds", mixedKindsSnapshot},
	{"listeners-of-gateway", listenersOfGatewaySnapshot},
	{"entries-of-ListenerSet", entriesOfListenerSetSnapshot},
	{"ListenerSets", listenerSetsSnapshot},
	{"teams", teamsSnapshot},
	{"ports-of-hostname", portsOfHostnameSnapshot},
	{"routes-of-two-ports", routesOfTwoPortsSnapshot},
	{"conflicting-listeners", conflictingListenersSnapshot},
	{"contested-hostname", contestedHostnameSnapshot},
	{"ReferenceGrants", referenceGrantsSnapshot},
}

// growingCluster is a cluster with n objects that one tenant can create.
type growingCluster struct {
	name     string
	snapshot func(n int) *gateway.Snapshot
}

// withoutLimits returns a cluster whose objects are all below the limits: an object above
// a limit does not cost the same.
func (c growingCluster) withoutLimits(n int) *gateway.Snapshot {
	s := c.snapshot(n)
	setLimits(s, v1alpha1.Limits{RulesPerTunnel: new(int32(math.MaxInt32)), ListenersPerNamespace: new(int32(math.MaxInt32))})
	return withStatuses(s)
}

// decideAndReport runs every step from the snapshot to the configuration and the statuses.
func decideAndReport(s *gateway.Snapshot) {
	result := gateway.Build(s, randomOptions)
	rulesConfiguration(result.Table)
	report(result, s)
}

// BenchmarkGrowth measures the time for each object in clusters that one tenant can make
// large. It must grow by no more than 1.3 times from 1,000 to 10,000 objects.
func BenchmarkGrowth(b *testing.B) {
	for _, cluster := range growingClusters {
		for _, n := range []int{1000, 10000} {
			b.Run(fmt.Sprintf("%s/objects=%d", cluster.name, n), func(b *testing.B) {
				s := cluster.withoutLimits(n)
				b.ReportAllocs()
				for b.Loop() {
					decideAndReport(s)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
			})
		}
	}
}

// Unlike the time, the allocation count is the same in every run.
func TestAllocationsAreProportionalToTheObjects(t *testing.T) {
	for _, cluster := range growingClusters {
		allocations := func(n int) float64 {
			s := cluster.withoutLimits(n)
			return testing.AllocsPerRun(1, func() { decideAndReport(s) })
		}
		if growth := allocations(500) / allocations(50); growth > 11 {
			t.Errorf("%s: 10 times as many objects lead to %.1f times as many allocations, want at most 11", cluster.name, growth)
		}
	}
}

// withStatuses gives the Gateway and its ListenerSets the statuses that the report
// contains, as in a cluster that does not change.
func withStatuses(s *gateway.Snapshot) *gateway.Snapshot {
	r := report(gateway.Build(s, randomOptions), s)
	s.Gateway.Status = r.Gateway
	statuses := map[string]gatewayv1.ListenerSetStatus{}
	for _, set := range r.ListenerSets {
		statuses[set.String()] = set.Status
	}
	for _, set := range s.ListenerSets {
		set.Status = statuses[set.Namespace+"/"+set.Name]
	}
	return s
}

// mixedKindsSnapshot has n HTTPRoutes and n GRPCRoutes with 16 hostnames each on one
// listener, alternating in age.
func mixedKindsSnapshot(n int) *gateway.Snapshot {
	s := routesSnapshot()
	for i := range n {
		age := time.Duration(i) * -time.Minute
		http := httpRoute(routeMeta(fmt.Sprintf("http-%05d", i), age), gatewayv1.HTTPRouteMatch{})
		grpc := &gatewayv1.GRPCRoute{ObjectMeta: routeMeta(fmt.Sprintf("grpc-%05d", i), age)}
		grpc.Spec.CommonRouteSpec = http.Spec.CommonRouteSpec
		for j := range 16 {
			http.Spec.Hostnames = append(http.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d.http-%05d.example.com", j, i)))
			grpc.Spec.Hostnames = append(grpc.Spec.Hostnames, gatewayv1.Hostname(fmt.Sprintf("h%d.grpc-%05d.example.com", j, i)))
		}
		s.HTTPRoutes = append(s.HTTPRoutes, http)
		s.GRPCRoutes = append(s.GRPCRoutes, grpc)
	}
	return s
}

// listenersOfGatewaySnapshot has a Gateway with n listeners and one route for each.
// The API server allows fewer, but the decision must not depend on that.
func listenersOfGatewaySnapshot(n int) *gateway.Snapshot {
	s := routesSnapshot()
	s.Gateway.Spec.Listeners = nil
	for i := range n {
		l := teamListener(fmt.Sprintf("l%05d", i), fmt.Sprintf("h%05d.example.com", i))
		s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, gatewayv1.Listener(l))
		s.HTTPRoutes = append(s.HTTPRoutes, routeOfSection(i, l.Name))
	}
	return s
}

// listenerSetsSnapshot has n ListenerSets in one namespace each, with one entry and one
// route.
func listenerSetsSnapshot(n int) *gateway.Snapshot {
	s := teamsSnapshot(n)
	for i, set := range s.ListenerSets {
		set.Spec.Listeners = set.Spec.Listeners[:1]
		set.CreationTimestamp = metav1.NewTime(dayOne.Add(time.Duration(i) * time.Minute))
		s.HTTPRoutes[i] = s.HTTPRoutes[2*i]
		s.HTTPRoutes[i].CreationTimestamp = set.CreationTimestamp
	}
	s.HTTPRoutes = s.HTTPRoutes[:n]
	return s
}

// entriesOfListenerSetSnapshot has a ListenerSet with n entries and one route for each.
func entriesOfListenerSetSnapshot(n int) *gateway.Snapshot {
	s := teamsSnapshot(1)
	set := s.ListenerSets[0]
	set.Spec.Listeners, s.HTTPRoutes = nil, nil
	for i := range n {
		l := teamListener(fmt.Sprintf("l%05d", i), fmt.Sprintf("h%05d.example.com", i))
		set.Spec.Listeners = append(set.Spec.Listeners, l)
		route := &gatewayv1.HTTPRoute{ObjectMeta: routeMeta(fmt.Sprintf("route-%05d", i), 0), Spec: teamRoute(string(l.Name), "/")}
		route.Namespace = set.Namespace
		s.HTTPRoutes = append(s.HTTPRoutes, route)
	}
	return s
}

// portsOfHostnameSnapshot has a Gateway with n listeners for one hostname on n ports,
// and one route for each listener.
func portsOfHostnameSnapshot(n int) *gateway.Snapshot {
	s := listenersOfGatewaySnapshot(n)
	for i := range s.Gateway.Spec.Listeners {
		l := &s.Gateway.Spec.Listeners[i]
		l.Hostname, l.Port = new(gatewayv1.Hostname("www.example.com")), gatewayv1.PortNumber(1000+i)
	}
	return s
}

// routesOfTwoPortsSnapshot has n routes that are attached to two listeners with one
// hostname.
func routesOfTwoPortsSnapshot(n int) *gateway.Snapshot {
	s := portsOfHostnameSnapshot(n)
	s.Gateway.Spec.Listeners = s.Gateway.Spec.Listeners[:2]
	for _, route := range s.HTTPRoutes {
		route.Spec.ParentRefs[0].SectionName = nil
	}
	return s
}

// conflictingListenersSnapshot has a Gateway with n listeners that all conflict with
// each other.
func conflictingListenersSnapshot(n int) *gateway.Snapshot {
	s := portsOfHostnameSnapshot(n)
	for i := range s.Gateway.Spec.Listeners {
		s.Gateway.Spec.Listeners[i].Port = 80
	}
	return s
}

// contestedHostnameSnapshot has n ListenerSets with the hostname that a Gateway claims
// on n ports.
func contestedHostnameSnapshot(n int) *gateway.Snapshot {
	s := portsOfHostnameSnapshot(n)
	teams := teamsSnapshot(n)
	s.Gateway.Spec.AllowedListeners = teams.Gateway.Spec.AllowedListeners
	s.ListenerSets, s.Namespaces = teams.ListenerSets, teams.Namespaces
	for _, set := range s.ListenerSets {
		set.Spec.Listeners = []gatewayv1.ListenerEntry{teamListener("site", "www.example.com")}
		set.Spec.Listeners[0].Port = 999
	}
	return s
}

// referenceGrantsSnapshot has n routes that refer to Services in one namespace, which has
// a ReferenceGrant for each of them.
func referenceGrantsSnapshot(n int) *gateway.Snapshot {
	s := listenerSetsSnapshot(n)
	for i, route := range s.HTTPRoutes {
		name := types.NamespacedName{Namespace: "services", Name: fmt.Sprintf("web-%05d", i)}
		ref := &route.Spec.Rules[0].BackendRefs[0].BackendObjectReference
		ref.Namespace, ref.Name = new(gatewayv1.Namespace(name.Namespace)), gatewayv1.ObjectName(name.Name)
		s.Services.Set(name, s.Services.Value(types.NamespacedName{Namespace: route.Namespace, Name: "web"}))
		s.Grants = append(s.Grants, &gatewayv1beta1.ReferenceGrant{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: route.Namespace},
			Spec: gatewayv1beta1.ReferenceGrantSpec{
				From: []gatewayv1beta1.ReferenceGrantFrom{{Group: gatewayv1.GroupName, Kind: gateway.KindHTTPRoute, Namespace: gatewayv1.Namespace(route.Namespace)}},
				To:   []gatewayv1beta1.ReferenceGrantTo{{Kind: "Service", Name: new(gatewayv1.ObjectName(name.Name))}},
			},
		})
	}
	return s
}

func routeOfSection(i int, section gatewayv1.SectionName) *gatewayv1.HTTPRoute {
	route := httpRoute(routeMeta(fmt.Sprintf("route-%05d", i), 0), gatewayv1.HTTPRouteMatch{})
	route.Spec.ParentRefs = []gatewayv1.ParentReference{{Name: route.Spec.ParentRefs[0].Name, SectionName: &section}}
	return route
}
