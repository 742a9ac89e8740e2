package gateway_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// memoryWorld is a random cluster that changes. Like the controller's cache, it replaces
// objects and never changes them.
type memoryWorld struct {
	*randomizer
	edits []string // all so far
	only  []string // the edits that happen; nil for all
	count int
}

// memoryEdits are what changes in a cluster. The first ones are the most frequent.
var memoryEdits = []struct {
	name   string
	weight int
	edit   func(*memoryWorld)
}{
	{"actions of a route", 45, (*memoryWorld).changeActions},
	{"a Service", 14, (*memoryWorld).changeService},
	{"EndpointSlices", 6, (*memoryWorld).changeSlices},
	{"imports", 6, (*memoryWorld).changeImport},
	{"statuses", 8, (*memoryWorld).changeStatuses},
	{"a route", 8, (*memoryWorld).changeRoute},
	{"the order", 3, func(w *memoryWorld) {
		shuffle(w, w.snapshot.HTTPRoutes)
		shuffle(w, w.snapshot.ListenerSets)
		shuffle(w, w.snapshot.Grants)
	}},
	{"a ReferenceGrant", 4, (*memoryWorld).changeGrant},
	{"a Namespace", 4, (*memoryWorld).changeNamespace},
	{"a ListenerSet", 3, (*memoryWorld).changeSet},
	{"the Gateway", 3, (*memoryWorld).changeGateway},
	{"the GatewayClass", 4, (*memoryWorld).changeClass},
	{"time", 3, func(w *memoryWorld) {
		w.snapshot.Now = w.snapshot.Now.Add(pick(w.randomizer, time.Second, 100*365*24*time.Hour))
	}},
	{"certificates", 3, (*memoryWorld).changeCertificate},
	{"a BackendTLSPolicy", 2, (*memoryWorld).changePolicy},
	{"an AccessPolicy", 3, (*memoryWorld).changeAccessPolicy},
	{"what is known about Access", 4, (*memoryWorld).changeAccess},
	{"reserved addresses", 3, func(w *memoryWorld) {
		toggle(w.snapshot.Reserved, pick(w.randomizer, "10.0.0.2", "10.0.0.3", randomReserved))
	}},
	{"the CRD of ServiceImports", 2, func(w *memoryWorld) { w.snapshot.NoServiceImports = !w.snapshot.NoServiceImports }},
	{"the data plane", 1, func(w *memoryWorld) {
		w.snapshot.DataPlane = pick(w.randomizer, v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneIngressRules)
	}},
	{"other Gateways", 2, func(w *memoryWorld) { w.snapshot.OlderGateways = 1000 - w.snapshot.OlderGateways }},
	{"an orphan", 2, (*memoryWorld).changeOrphan},
	{"a conflict", 2, (*memoryWorld).changeConflict},
}

// next returns the cluster after one or two changes.
func (w *memoryWorld) next() *gateway.Snapshot {
	s := *w.snapshot
	s.ListenerSets, s.HTTPRoutes, s.GRPCRoutes, s.Grants = slices.Clone(s.ListenerSets), slices.Clone(s.HTTPRoutes), slices.Clone(s.GRPCRoutes), slices.Clone(s.Grants)
	s.BackendTLSPolicies, s.AccessPolicies = slices.Clone(s.BackendTLSPolicies), slices.Clone(s.AccessPolicies)
	s.Namespaces = maps.Clone(s.Namespaces)
	s.ServiceImports, s.ImportedSlices, s.Reserved = maps.Clone(s.ServiceImports), maps.Clone(s.ImportedSlices), maps.Clone(s.Reserved)
	s.Certificates, s.Orphans = maps.Clone(s.Certificates), maps.Clone(s.Orphans)
	w.snapshot, w.imports.snapshot = &s, &s
	for range pick(w.randomizer, 1, 1, 1, 1, 2) {
		w.count++
		left := w.IntN(w.totalWeight())
		for _, e := range memoryEdits {
			if left -= w.weight(e.name, e.weight); left < 0 {
				w.edits = append(w.edits, e.name)
				e.edit(w)
				break
			}
		}
	}
	shown := s
	return &shown
}

func (w *memoryWorld) weight(edit string, weight int) int {
	if w.only != nil && !slices.Contains(w.only, edit) {
		return 0
	}
	return weight
}

func (w *memoryWorld) totalWeight() int {
	total := 0
	for _, e := range memoryEdits {
		total += w.weight(e.name, e.weight)
	}
	return total
}

func shuffle[T any](w *memoryWorld, all []T) {
	w.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
}

func toggle[K comparable](set map[K]bool, key K) {
	if set[key] {
		delete(set, key)
	} else {
		set[key] = true
	}
}

// replaceOne replaces one of the objects by a changed copy.
func replaceOne[T interface{ DeepCopy() T }](w *memoryWorld, all []T, change func(T)) {
	if len(all) > 0 {
		i := w.IntN(len(all))
		all[i] = all[i].DeepCopy()
		change(all[i])
	}
}

func (w *memoryWorld) changeActions() {
	if len(w.snapshot.GRPCRoutes) > 0 && w.chance(30) {
		replaceOne(w, w.snapshot.GRPCRoutes, func(r *gatewayv1.GRPCRoute) {
			rule := w.grpcRule(types.NamespacedName{Namespace: r.Namespace, Name: "calls"})
			r.Generation++
			r.Spec.Rules[w.IntN(len(r.Spec.Rules))].BackendRefs = rule.BackendRefs
		})
		return
	}
	replaceOne(w, w.snapshot.HTTPRoutes, func(r *gatewayv1.HTTPRoute) {
		i := w.IntN(len(r.Spec.Rules))
		from, to := w.rule(types.NamespacedName{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%d", r.Name, i)}), &r.Spec.Rules[i]
		r.Generation++
		switch w.IntN(4) {
		case 0:
			to.BackendRefs, to.Filters = from.BackendRefs, from.Filters
		case 1:
			to.Timeouts, to.Retry = &gatewayv1.HTTPRouteTimeouts{Request: new(pick[gatewayv1.Duration](w.randomizer, "1s", "10s"))}, from.Retry
		default:
			to.BackendRefs = from.BackendRefs
		}
	})
}

func (w *memoryWorld) changeRoute() {
	s := w.snapshot
	i := w.IntN(len(s.HTTPRoutes) + 1)
	if i == len(s.HTTPRoutes) || w.chance(20) {
		s.HTTPRoutes = append(s.HTTPRoutes, w.route(1000+w.count))
		return
	}
	route := s.HTTPRoutes[i].DeepCopy()
	s.HTTPRoutes[i] = route
	route.Generation++
	switch w.IntN(6) {
	case 0:
		s.HTTPRoutes = slices.Delete(s.HTTPRoutes, i, i+1)
	case 1:
		route.CreationTimestamp = pick(w.randomizer, randomTimes...)
	case 2:
		route.Spec.CommonRouteSpec = w.parents()
	case 3:
		route.Spec.Hostnames = w.routeHostnames()
	case 4:
		route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{w.match()}
	default:
		route.Spec.Rules = append(route.Spec.Rules, w.rule(types.NamespacedName{Namespace: route.Namespace, Name: "more"}))
	}
}

// randomKey returns one of the keys, in an order that depends only on the seed.
func randomKey[V any](w *memoryWorld, all map[types.NamespacedName]V) (types.NamespacedName, bool) {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	if len(keys) == 0 {
		return types.NamespacedName{}, false
	}
	return pick(w.randomizer, keys...), true
}

func (w *memoryWorld) changeService() {
	name, ok := randomKey(w, maps.Collect(w.snapshot.Services.All()))
	if !ok {
		return
	}
	service := w.snapshot.Services.Value(name).DeepCopy()
	w.snapshot.Services.Set(name, service)
	switch w.IntN(7) {
	case 0:
		w.snapshot.Services.Delete(name)
	case 1:
		service.Spec.Ports = service.Spec.Ports[:1]
	case 2:
		service.Spec.ClusterIP = pick(w.randomizer, "10.96.0.1", "10.96.0.2", "")
	case 3:
		service.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
	case 4:
		service.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	case 5:
		service.Labels = map[string]string{"changed": fmt.Sprint(w.count)}
	default:
		w.service(name, w.specialService)
	}
}

// changeSlices changes the EndpointSlices of a Service whose addresses or ports matter.
func (w *memoryWorld) changeSlices() {
	s := w.snapshot
	name, ok := randomKey(w, maps.Collect(s.EndpointSlices.All()))
	if !ok || s.Services.Value(name) == nil || w.chance(20) {
		if name, ok = randomKey(w, maps.Collect(s.Services.All())); !ok {
			return
		}
		s.Services.Set(name, s.Services.Value(name).DeepCopy())
		s.Services.Value(name).Spec.ClusterIP, s.Services.Value(name).Spec.InternalTrafficPolicy = "10.96.0.9", new(corev1.ServiceInternalTrafficPolicyLocal)
		if w.chance(50) {
			s.Services.Value(name).Spec.ClusterIP, s.Services.Value(name).Spec.Ports[0].TargetPort = corev1.ClusterIPNone, intstr.FromString("web")
		}
	}
	s.EndpointSlices.Set(name, []*discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{pick(w.randomizer, "10.0.0.2", "10.0.0.3", "127.0.0.1", randomReserved)}}},
		Ports:     []discoveryv1.EndpointPort{{Name: new("web"), Port: new(3000 + w.Int32N(3))}},
	}})
}

func (w *memoryWorld) changeImport() {
	name, ok := randomKey(w, w.snapshot.ServiceImports)
	if !ok {
		return
	}
	if w.chance(20) {
		delete(w.snapshot.ServiceImports, name)
		return
	}
	slices, object := w.snapshot.ImportedSlices[name], w.snapshot.ServiceImports[name]
	w.imports.importRef(gatewayv1.HTTPBackendRef{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Port: new(gatewayv1.PortNumber(8080))}}}, name)
	if w.chance(50) {
		w.snapshot.ImportedSlices[name] = slices
	} else {
		w.snapshot.ServiceImports[name] = object
	}
}

// changeStatuses writes the statuses of the last decision, like the controller.
func (w *memoryWorld) changeStatuses() {
	report := gateway.Build(w.snapshot, bothDataPlanes).Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushFailed, Message: "It failed."}})
	g := w.snapshot.Gateway.DeepCopy()
	g.Status = report.Gateway
	w.snapshot.Gateway = g
	for i, set := range w.snapshot.ListenerSets {
		for _, status := range report.ListenerSets {
			if status.Namespace == set.Namespace && status.Name == set.Name {
				w.snapshot.ListenerSets[i] = set.DeepCopy()
				w.snapshot.ListenerSets[i].Status = status.Status
			}
		}
	}
	replaceOne(w, w.snapshot.HTTPRoutes, func(r *gatewayv1.HTTPRoute) { r.Labels = map[string]string{"status": fmt.Sprint(w.count)} })
}
