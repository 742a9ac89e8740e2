package gateway

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// backendResolver finds the origin that a backendRef leads to.
type backendResolver struct {
	services      map[types.NamespacedName]*corev1.Service
	clusterDomain string
}

// origin returns the URL of the Service port that ref names, as seen by a
// route of the given namespace, or why it does not resolve.
func (r backendResolver) origin(ref gatewayv1.BackendObjectReference, namespace string) (string, *Problem) {
	if group, kind := ptr.Deref(ref.Group, ""), ptr.Deref(ref.Kind, "Service"); group != "" || kind != "Service" {
		return "", unresolved(gatewayv1.RouteReasonInvalidKind, "%q is of kind %s, group %q; only Services of the core group are supported", ref.Name, kind, group)
	}
	name := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	if name.Namespace != namespace {
		// Also when the Service does not exist: whoever may not refer to it must
		// not learn that.
		return "", unresolved(gatewayv1.RouteReasonRefNotPermitted, "Service %s is in another namespace, and no ReferenceGrant permits it", name)
	}
	service := r.services[name]
	if service == nil {
		return "", unresolved(gatewayv1.RouteReasonBackendNotFound, "Service %s does not exist", name)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return "", unresolved(gatewayv1.RouteReasonInvalidKind, "Service %s is of type ExternalName, which could point anywhere", name)
	}
	port := servicePort(service, ptr.Deref(ref.Port, 0))
	if port == nil {
		return "", unresolved(gatewayv1.RouteReasonBackendNotFound, "Service %s has no TCP port %d", name, ptr.Deref(ref.Port, 0))
	}
	return r.url(name, service, port)
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

func (r backendResolver) url(name types.NamespacedName, service *corev1.Service, port *corev1.ServicePort) (string, *Problem) {
	scheme, problem := originScheme(name, port)
	if problem != nil {
		return "", problem
	}
	number, problem := originPort(name, service, port)
	if problem != nil {
		return "", problem
	}
	return fmt.Sprintf("%s://%s.%s.svc.%s:%d", scheme, name.Name, name.Namespace, r.clusterDomain, number), nil
}

// originScheme maps the port's appProtocol (KEP-3726) to the URL's scheme.
func originScheme(name types.NamespacedName, port *corev1.ServicePort) (string, *Problem) {
	switch protocol := ptr.Deref(port.AppProtocol, ""); protocol {
	case "", "http", "kubernetes.io/ws":
		return "http", nil
	case "https", "kubernetes.io/wss":
		return "https", nil
	default:
		return "", unresolved(gatewayv1.RouteReasonUnsupportedProtocol,
			"port %d of Service %s has appProtocol %q, which a tunnel cannot reach", port.Port, name, protocol)
	}
}

// originPort returns the port to dial: a headless Service's name leads to the
// pods themselves, so it is the target port there.
func originPort(name types.NamespacedName, service *corev1.Service, port *corev1.ServicePort) (int32, *Problem) {
	if service.Spec.ClusterIP != corev1.ClusterIPNone {
		return port.Port, nil
	}
	if port.TargetPort.StrVal != "" {
		return 0, unresolved(gatewayv1.RouteReasonBackendNotFound,
			"headless Service %s names its target port %q; give it by number", name, port.TargetPort.StrVal)
	}
	if port.TargetPort.IntVal != 0 {
		return port.TargetPort.IntVal, nil
	}
	return port.Port, nil
}

func unresolved(reason gatewayv1.RouteConditionReason, format string, args ...any) *Problem {
	return &Problem{Reason: string(reason), Message: fmt.Sprintf(format, args...)}
}
