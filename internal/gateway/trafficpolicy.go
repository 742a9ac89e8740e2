package gateway

import (
	"iter"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// trafficAnnotations are the Service annotations that affect decisions. kube-proxy gives
// precedence to the first one.
var trafficAnnotations = []string{corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode}

// TrafficAnnotations returns the Service annotations that affect decisions, with short
// values, so that a cache can keep them. It returns nil when there are none.
func TrafficAnnotations(annotations map[string]string) map[string]string {
	for _, name := range trafficAnnotations {
		switch value, ok := annotations[name]; {
		case !ok:
		case value == "" || value == "disabled" || value == "Disabled":
			return nil
		default:
			return map[string]string{name: "Auto"} // kube-proxy accepts every other value
		}
	}
	return nil
}

// trafficPolicy returns the field or annotation with which a Service prefers pods near the
// client, or "". Only kube-proxy can honor it: all Envoys of a Gateway get the same pods.
func trafficPolicy(service *corev1.Service) string {
	switch {
	case service.Spec.ClusterIP == corev1.ClusterIPNone:
		return ""
	case ptr.Deref(service.Spec.InternalTrafficPolicy, "") == corev1.ServiceInternalTrafficPolicyLocal:
		return "internalTrafficPolicy"
	case ptr.Deref(service.Spec.TrafficDistribution, "") != "":
		return "trafficDistribution"
	}
	for name := range TrafficAnnotations(service.Annotations) {
		return "the annotation " + name
	}
	return ""
}

// addressing returns by which addresses the data plane reaches the Service.
func (r backendResolver) addressing(service *corev1.Service) routing.Addressing {
	if r.capabilities.FollowsEndpoints && (r.addresses == v1alpha1.BackendsService || trafficPolicy(service) != "") {
		return routing.AddressClusterIP
	}
	return routing.AddressEndpoints
}

// addIgnoredPolicies adds to each route the Services whose traffic policy has no effect,
// because the route's requests use HTTP/2. entries are all entries of these routes.
func (d *decision) addIgnoredPolicies(entries iter.Seq[*routing.Entry]) {
	ignored := map[*Route]map[types.NamespacedName]string{}
	for e := range entries {
		if e.Action.Forward == nil {
			continue
		}
		yieldBackends(e.Action.Forward, func(b routing.Backend) bool {
			policy := d.ignoredPolicy(e, &b)
			if policy == "" {
				return true // most backends
			}
			route := d.Routes[e.Source.Route.Rank]
			if ignored[route] == nil {
				ignored[route] = map[types.NamespacedName]string{}
			}
			ignored[route][b.Service] = policy
			return true
		})
	}
	for route, policies := range ignored {
		route.ignoredPolicies = describeIgnoredPolicies(policies, route.messageSize)
	}
}

// ignoredPolicy returns the traffic policy of a backend's Service that has no effect for the
// entry's requests, or "".
func (d *decision) ignoredPolicy(e *routing.Entry, b *routing.Backend) string {
	if b.Import || b.Addressing != routing.AddressClusterIP || !d.usesHTTP2(e, b) {
		return ""
	}
	service := d.snapshot.Services.Value(b.Service)
	if service == nil {
		return ""
	}
	return trafficPolicy(service)
}

// usesHTTP2 reports whether the entry's requests go to the backend by HTTP/2.
func (d *decision) usesHTTP2(e *routing.Entry, b *routing.Backend) bool {
	merged := ptr.Deref(settings.MergeOriginRequests(e.OriginRequest, d.Table.OriginRequest), v1alpha1.OriginRequest{})
	return b.UsesHTTP2(e.Source.Route.Kind, ptr.Deref(merged.HTTP2Origin, false))
}

func describeIgnoredPolicies(policies map[types.NamespacedName]string, size int) string {
	list := message.List{
		Before: " HTTP/2 and gRPC requests go to all ready pods, so these fields have no effect for them: ", After: ".", MaxSize: size,
	}
	for _, name := range slices.SortedFunc(maps.Keys(policies), compareNames) {
		list.Add("%s of Service %s", policies[name], name)
	}
	return list.String()
}
