package gateway

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// backendResolver finds the origins that backendRefs lead to.
type backendResolver struct {
	grants        grants
	services      map[types.NamespacedName]*corev1.Service
	slices        map[types.NamespacedName][]*discoveryv1.EndpointSlice
	clusterDomain string
}

// origin is where an ingress rule sends requests.
type origin struct {
	scheme, url string
}

// resolve returns the Service port that ref names, as seen by the route, or why
// it does not resolve.
func (r backendResolver) resolve(ref gatewayv1.BackendObjectReference, route *Route) (origin, *Problem) {
	if group, kind := ptr.Deref(ref.Group, ""), ptr.Deref(ref.Kind, "Service"); group != "" || kind != "Service" {
		return origin{}, routeProblem(gatewayv1.RouteReasonInvalidKind, "%q is of kind %s, group %q; only Services of the core group are supported", ref.Name, kind, group)
	}
	name := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace))), Name: string(ref.Name)}
	if !r.grants.permits(referrer{route.Kind, route.Namespace}, target{"Service", name.Namespace, name.Name}) {
		// Also when the Service does not exist: whoever may not refer to it must
		// not learn that.
		return origin{}, routeProblem(gatewayv1.RouteReasonRefNotPermitted,
			"Service %s is in another namespace, and no ReferenceGrant there permits it from %ss of namespace %q", name, route.Kind, route.Namespace)
	}
	return r.resolveService(name, ptr.Deref(ref.Port, 0))
}

func (r backendResolver) resolveService(name types.NamespacedName, number gatewayv1.PortNumber) (origin, *Problem) {
	service := r.services[name]
	if service == nil {
		return origin{}, routeProblem(gatewayv1.RouteReasonBackendNotFound, "Service %s does not exist", name)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return origin{}, routeProblem(gatewayv1.RouteReasonInvalidKind, "Service %s is of type ExternalName, which could point anywhere", name)
	}
	port := servicePort(service, number)
	if port == nil {
		return origin{}, routeProblem(gatewayv1.RouteReasonBackendNotFound, "Service %s has no TCP port %d", name, number)
	}
	scheme, problem := originScheme(name, port)
	if problem != nil {
		return origin{}, problem
	}
	dial, problem := r.originPort(name, service, port)
	if problem != nil {
		return origin{}, problem
	}
	url := scheme + "://" + name.Name + "." + name.Namespace + ".svc." + r.clusterDomain + ":" + strconv.Itoa(int(dial))
	return origin{scheme, url}, nil
}

// servicePort returns the TCP port with the number, or nil.
func servicePort(service *corev1.Service, number gatewayv1.PortNumber) *corev1.ServicePort {
	i := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == number && (p.Protocol == corev1.ProtocolTCP || p.Protocol == "")
	})
	if i < 0 {
		return nil
	}
	return &service.Spec.Ports[i]
}

// originScheme maps the port's appProtocol (KEP-3726) to the URL's scheme.
func originScheme(name types.NamespacedName, port *corev1.ServicePort) (string, *Problem) {
	switch protocol := ptr.Deref(port.AppProtocol, ""); protocol {
	case "", "http", "kubernetes.io/ws":
		return "http", nil
	case "https", "kubernetes.io/wss":
		return "https", nil
	default:
		return "", routeProblem(gatewayv1.RouteReasonUnsupportedProtocol,
			"port %d of Service %s has appProtocol %q, which a tunnel cannot reach", port.Port, name, protocol)
	}
}

// NamesTargetPort reports whether the Service is headless and the target port
// of one of its ports has a name, which only its EndpointSlices translate.
func NamesTargetPort(service *corev1.Service) bool {
	return service.Spec.ClusterIP == corev1.ClusterIPNone && slices.ContainsFunc(service.Spec.Ports,
		func(p corev1.ServicePort) bool { return p.TargetPort.StrVal != "" })
}

// originPort returns the port to dial: a headless Service's name leads to the
// pods themselves, so it is the target port there.
func (r backendResolver) originPort(name types.NamespacedName, service *corev1.Service, port *corev1.ServicePort) (int32, *Problem) {
	switch {
	case service.Spec.ClusterIP != corev1.ClusterIPNone:
		return port.Port, nil
	case port.TargetPort.StrVal != "":
		return r.namedPort(name, port)
	case port.TargetPort.IntVal != 0:
		return port.TargetPort.IntVal, nil
	default:
		return port.Port, nil
	}
}

// namedPort reads the number from the EndpointSlices, the lowest one when pods
// differ: a rule has one port.
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
			"headless Service %s names its target port %q, and no EndpointSlice says its number", name, port.TargetPort.StrVal)
	}
	return lowest, nil
}

func routeProblem(reason gatewayv1.RouteConditionReason, format string, args ...any) *Problem {
	return &Problem{Reason: string(reason), Message: fmt.Sprintf(format, args...)}
}
