package gateway

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// backendResolver finds the backends of backendRefs.
type backendResolver struct {
	grants       grants
	services     map[types.NamespacedName]*corev1.Service
	slices       map[types.NamespacedName][]*discoveryv1.EndpointSlice
	capabilities routing.Capabilities
	// envoy are the capabilities of Envoy if the data plane has ingress rules, or nil.
	envoy *routing.Capabilities
}

// resolve returns the Service port that ref names in the route, or
// why the reference does not resolve.
func (r backendResolver) resolve(ref gatewayv1.BackendObjectReference, route *Route) (routing.Backend, *Problem) {
	if group, kind := ptr.Deref(ref.Group, ""), ptr.Deref(ref.Kind, "Service"); group != "" || kind != "Service" {
		return routing.Backend{}, routeProblem(gatewayv1.RouteReasonInvalidKind, "backend %q has kind %s in group %q; only Services of the core group are supported", ref.Name, kind, group)
	}
	name := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace))), Name: string(ref.Name)}
	if !r.grants.permits(referrer{route.Kind, route.Namespace}, target{"Service", name.Namespace, name.Name}) {
		// The grant is checked before the Service is read. The message must not
		// reveal whether the Service exists.
		return routing.Backend{}, routeProblem(gatewayv1.RouteReasonRefNotPermitted,
			"Service %s is in another namespace, and no ReferenceGrant there permits references from %ss in namespace %q", name, route.Kind, route.Namespace)
	}
	return r.resolveService(name, ptr.Deref(ref.Port, 0))
}

func (r backendResolver) resolveService(name types.NamespacedName, number gatewayv1.PortNumber) (routing.Backend, *Problem) {
	service := r.services[name]
	if service == nil {
		return routing.Backend{}, routeProblem(gatewayv1.RouteReasonBackendNotFound, "Service %s does not exist", name)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return routing.Backend{}, routeProblem(gatewayv1.RouteReasonInvalidKind, "Service %s has type ExternalName, which is not supported because it can point to any host", name)
	}
	port := servicePort(service, number)
	if port == nil {
		return routing.Backend{}, routeProblem(gatewayv1.RouteReasonBackendNotFound, "Service %s has no TCP port %d", name, number)
	}
	protocol, problem := r.protocol(name, port)
	if problem != nil {
		return routing.Backend{}, problem
	}
	dial, problem := r.port(name, service, port)
	if problem != nil {
		return routing.Backend{}, problem
	}
	backend := routing.Backend{
		Service: name, Port: dial, Protocol: protocol, Headless: service.Spec.ClusterIP == corev1.ClusterIPNone,
		ServicePort: port.Port, PortName: port.Name,
	}
	if len(service.Spec.IPFamilies) > 0 {
		backend.Family = service.Spec.IPFamilies[0]
	}
	if !backend.Headless {
		backend.ClusterIP = routing.CanonicalIP(service.Spec.ClusterIP)
	}
	if r.capabilities.NeedsClusterIP && !backend.Headless && backend.ClusterIP == "" {
		return routing.Backend{}, routeProblem(gatewayv1.RouteReasonBackendNotFound, "Service %s has no ClusterIP yet", name)
	}
	return backend, nil
}

// servicePort returns the Service's TCP port with the number, or nil.
func servicePort(service *corev1.Service, number gatewayv1.PortNumber) *corev1.ServicePort {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == number && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "")
	})
	if i < 0 {
		return nil
	}
	return &service.Spec.Ports[i]
}

// protocol maps the appProtocol (KEP-3726) of the port to a protocol that the data
// plane supports.
func (r backendResolver) protocol(name types.NamespacedName, port *corev1.ServicePort) (routing.Protocol, *Problem) {
	appProtocol := ptr.Deref(port.AppProtocol, "")
	if p := appProtocols[appProtocol]; slices.Contains(r.capabilities.Protocols, p) {
		return p, nil
	}
	problem := routeProblem(gatewayv1.RouteReasonUnsupportedProtocol, "port %d of Service %s has appProtocol %q, which a tunnel does not support", port.Port, name, appProtocol)
	if p, known := appProtocols[appProtocol]; known && r.envoy != nil && slices.Contains(r.envoy.Protocols, p) {
		problem = routeProblem(gatewayv1.RouteReasonUnsupportedProtocol, "port %d of Service %s has appProtocol %q, which is not supported by ingress rules. %s", port.Port, name, appProtocol, remedyEnvoy)
	}
	return 0, problem
}

var appProtocols = map[string]routing.Protocol{
	"": routing.ProtocolHTTP, "http": routing.ProtocolHTTP, "kubernetes.io/ws": routing.ProtocolHTTP,
	"https": routing.ProtocolHTTPS, "kubernetes.io/wss": routing.ProtocolHTTPS,
	"kubernetes.io/h2c": routing.ProtocolH2C,
}

// NamesTargetPort reports whether the Service is headless and refers to a target
// port by name. Only the EndpointSlices contain the number of such a port.
func NamesTargetPort(service *corev1.Service) bool {
	return service.Spec.ClusterIP == corev1.ClusterIPNone && slices.ContainsFunc(service.Spec.Ports,
		func(p corev1.ServicePort) bool { return p.TargetPort.StrVal != "" })
}

// port returns the port to dial. The name of a headless Service resolves to
// the pods, so the port of such a Service is the target port, unless the data plane
// follows the EndpointSlices.
func (r backendResolver) port(name types.NamespacedName, service *corev1.Service, port *corev1.ServicePort) (int32, *Problem) {
	switch {
	case service.Spec.ClusterIP != corev1.ClusterIPNone, r.capabilities.FollowsEndpoints:
		return port.Port, nil
	case port.TargetPort.StrVal != "":
		return r.namedPort(name, port)
	case port.TargetPort.IntVal != 0:
		return port.TargetPort.IntVal, nil
	default:
		return port.Port, nil
	}
}

// namedPort returns the number of a named target port from the EndpointSlices.
// When pods have different numbers, it returns the lowest, because an ingress
// rule has one port.
func (r backendResolver) namedPort(name types.NamespacedName, port *corev1.ServicePort) (int32, *Problem) {
	var lowest int32
	for _, slice := range r.slices[name] {
		for _, p := range slice.Ports {
			if ptr.Deref(p.Name, "") == port.Name && p.Port != nil && (lowest == 0 || *p.Port < lowest) {
				lowest = *p.Port
			}
		}
	}
	if lowest == 0 {
		return 0, routeProblem(gatewayv1.RouteReasonBackendNotFound,
			"headless Service %s has the named target port %q, and no EndpointSlice contains its number", name, port.TargetPort.StrVal)
	}
	return lowest, nil
}

func routeProblem(reason gatewayv1.RouteConditionReason, format string, args ...any) *Problem {
	return &Problem{Reason: string(reason), Message: fmt.Sprintf(format, args...)}
}
