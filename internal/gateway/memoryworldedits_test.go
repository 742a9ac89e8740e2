package gateway_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

func (w *memoryWorld) changeGrant() {
	s := w.snapshot
	if len(s.Grants) > 0 && w.chance(60) {
		s.Grants = slices.Delete(s.Grants, 0, 1)
		return
	}
	s.Grants = append(s.Grants, w.grant(1000+w.count))
}

func (w *memoryWorld) changeNamespace() {
	name := pick(w.randomizer, randomNamespaces...)
	namespace := w.snapshot.Namespaces[name].DeepCopy()
	w.snapshot.Namespaces[name] = namespace
	if w.chance(50) {
		namespace.Labels["odd"] = pick(w.randomizer, "true", "false")
		return
	}
	namespace.Annotations = map[string]string{"tunnelgateway.dev/hostnames": pick(w.randomizer, randomHostnames[1:]...)}
}

func (w *memoryWorld) changeSet() {
	replaceOne(w, w.snapshot.ListenerSets, func(set *gatewayv1.ListenerSet) {
		if w.chance(30) {
			set.CreationTimestamp = pick(w.randomizer, randomTimes...)
			return
		}
		for _, l := range w.listeners(1) {
			set.Spec.Listeners[w.IntN(len(set.Spec.Listeners))] = gatewayv1.ListenerEntry(l)
		}
	})
}

func (w *memoryWorld) changeGateway() {
	g := w.snapshot.Gateway.DeepCopy()
	w.snapshot.Gateway = g
	switch w.IntN(4) {
	case 0:
		g.Annotations = map[string]string{v1alpha1.PausedAnnotation: pick(w.randomizer, "true", "false")}
	case 1:
		g.Generation++
	default:
		l := w.listener(fmt.Sprintf("more%d", w.count))
		if !slices.ContainsFunc(g.Spec.Listeners, func(other gatewayv1.Listener) bool { return repeats(l, other) }) {
			g.Spec.Listeners = append(g.Spec.Listeners, l)
		}
	}
}

// changeClass changes limits, metrics, the addresses of backends and the hostnames that
// require Access.
func (w *memoryWorld) changeClass() {
	if w.snapshot.Class == nil {
		g := w.snapshot.Gateway.DeepCopy()
		w.snapshot.Gateway = g
		setParametersRefs(w.snapshot)
		g.Spec.Infrastructure = nil
	}
	spec := v1alpha1.TunnelConfigurationSpec{}
	if w.snapshot.ClassConfiguration != nil {
		spec = *w.snapshot.ClassConfiguration.Spec.DeepCopy()
	}
	switch w.IntN(6) {
	case 0:
		spec.Limits = &v1alpha1.Limits{RulesPerTunnel: new(20 + w.Int32N(60))}
	case 1:
		spec.ListenerConfigurations = []v1alpha1.ListenerConfiguration{{
			Hostname: pick(w.randomizer, "a.example.com", "*.example.com", "*.a.example.com"),
			Access:   &v1alpha1.Access{Required: w.chance(80), TeamName: new("team"), AUDTags: []v1alpha1.AUDTag{"0123456789012345678901234567890123456789012345678901234567890123"}},
		}}
	case 2:
		spec.Connector = &v1alpha1.Connector{Envoy: &v1alpha1.EnvoyProxy{Metrics: &v1alpha1.EnvoyMetrics{By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend}}}}
	case 3:
		spec.Limits = &v1alpha1.Limits{RegularExpressions: new(pick(w.randomizer, v1alpha1.RegularExpressionsAllowed, v1alpha1.RegularExpressionsRefused))}
	case 4:
		spec.Connector = &v1alpha1.Connector{Envoy: &v1alpha1.EnvoyProxy{Backends: new(pick(w.randomizer, v1alpha1.BackendsEndpoints, v1alpha1.BackendsService))}}
	default:
		spec = v1alpha1.TunnelConfigurationSpec{}
	}
	w.snapshot.ClassConfiguration = configuration("platform", "defaults", spec)
}

func (w *memoryWorld) changeCertificate() {
	name := types.NamespacedName{Namespace: pick(w.randomizer, randomNamespaces...), Name: "certificate"}
	w.snapshot.Certificates[name] = pick(w.randomizer, gateway.Certificate{NotAfter: w.snapshot.Now.Add(time.Minute)}, gateway.Certificate{Problem: "is broken"})
}

func (w *memoryWorld) changePolicy() {
	s := w.snapshot
	name, ok := randomKey(w, maps.Collect(s.Services.All()))
	if !ok || len(s.BackendTLSPolicies) > 0 && w.chance(50) {
		s.BackendTLSPolicies = nil
		return
	}
	s.BackendTLSPolicies = append(s.BackendTLSPolicies, &gatewayv1.BackendTLSPolicy{
		ObjectMeta: w.meta(name.Namespace, fmt.Sprintf("policy-%d", w.count)),
		Spec: gatewayv1.BackendTLSPolicySpec{
			TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Kind: "Service", Name: gatewayv1.ObjectName(name.Name)}}},
			Validation: gatewayv1.BackendTLSPolicyValidation{Hostname: "web.example.com", WellKnownCACertificates: new(gatewayv1.WellKnownCACertificatesSystem)},
		},
	})
}

func (w *memoryWorld) changeAccessPolicy() {
	s := w.snapshot
	if w.chance(30) {
		s.AccessPoliciesUnknown = !s.AccessPoliciesUnknown
		return
	}
	if len(s.AccessPolicies) > 0 {
		s.AccessPolicies = nil
		return
	}
	policy := &v1alpha1.AccessPolicy{ObjectMeta: w.meta(s.Gateway.Namespace, "login")}
	policy.Spec.TargetRefs = []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{
		Group: gatewayv1.GroupName, Kind: gateway.KindGateway, Name: gatewayv1.ObjectName(s.Gateway.Name),
	}}}
	policy.Spec.Policies = []v1alpha1.PolicyName{"staff"}
	s.AccessPolicies = []*v1alpha1.AccessPolicy{policy}
}

func (w *memoryWorld) changeAccess() {
	known := access.Known{Uptime: w.snapshot.Access.Uptime + time.Minute, Read: w.chance(50), Frozen: w.chance(20)}
	if known.InEffectKnown = w.chance(60); known.InEffectKnown {
		known.InEffect = routing.Access{pick(w.randomizer, "a.example.com", "*.example.com"): {TeamName: "team", AUDTags: []string{"tag"}}}
	}
	w.snapshot.Access = known
}

func (w *memoryWorld) changeOrphan() {
	if len(w.snapshot.HTTPRoutes) == 0 {
		return
	}
	route := pick(w.randomizer, w.snapshot.HTTPRoutes...)
	if w.snapshot.Orphans == nil {
		w.snapshot.Orphans = map[gateway.Owner]bool{}
	}
	toggle(w.snapshot.Orphans, gateway.Owner{Kind: gateway.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: route.Namespace, Name: route.Name}})
}

func (w *memoryWorld) changeConflict() {
	if w.snapshot.Conflicts != nil || len(w.snapshot.ListenerSets) == 0 {
		w.snapshot.Conflicts = nil
		return
	}
	set := pick(w.randomizer, w.snapshot.ListenerSets...)
	w.snapshot.Conflicts = map[gateway.Owner]map[gatewayv1.SectionName]*gateway.Problem{
		{Kind: gateway.KindListenerSet, NamespacedName: types.NamespacedName{Namespace: set.Namespace, Name: set.Name}}: {"l0": {Message: "known conflict"}},
	}
}
