package gateway

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// maxEndpointPortsPerService limits the ports in one Service's EndpointSlices that the
// controller reads to find numbers for named target ports. One EndpointSlice can have
// 20,000 ports.
const maxEndpointPortsPerService = 10_000

type servicePorts struct {
	// byNumber are the TCP ports. The first port with a number counts.
	byNumber map[gatewayv1.PortNumber]*corev1.ServicePort
	// targets are the port numbers in the EndpointSlices by the name of the Service's
	// port. The lowest number for a name counts. It is nil until a port needs them.
	targets map[string]int32
	// count counts the ports in the EndpointSlices.
	count int
}

func (r backendResolver) portsOf(name types.NamespacedName, service *corev1.Service) *servicePorts {
	ports := r.ports[name]
	if ports != nil {
		return ports
	}
	ports = &servicePorts{byNumber: make(map[gatewayv1.PortNumber]*corev1.ServicePort, len(service.Spec.Ports))}
	for i := range service.Spec.Ports {
		p := &service.Spec.Ports[i]
		isTCP := p.Protocol == corev1.ProtocolTCP || p.Protocol == ""
		if isTCP && ports.byNumber[p.Port] == nil {
			ports.byNumber[p.Port] = p
		}
	}
	r.ports[name] = ports
	return ports
}

// NamesTargetPort reports whether the Service is headless and refers to a target
// port by name. Only the EndpointSlices contain the number of such a port.
func NamesTargetPort(service *corev1.Service) bool {
	return service.Spec.ClusterIP == corev1.ClusterIPNone && slices.ContainsFunc(service.Spec.Ports,
		func(p corev1.ServicePort) bool { return p.TargetPort.StrVal != "" })
}

// port returns the port to dial. A headless Service's name resolves to the pods, so its
// port is the target port, unless the data plane follows the EndpointSlices.
func (r backendResolver) port(name types.NamespacedName, service *corev1.Service, port *corev1.ServicePort, ports *servicePorts) (int32, *Problem) {
	switch {
	case service.Spec.ClusterIP != corev1.ClusterIPNone, r.capabilities.FollowsEndpoints:
		return port.Port, nil
	case port.TargetPort.StrVal != "":
		return r.namedPort(name, port, ports)
	case port.TargetPort.IntVal != 0:
		return port.TargetPort.IntVal, nil
	default:
		return port.Port, nil
	}
}

// namedPort returns a named target port's number from the EndpointSlices.
func (r backendResolver) namedPort(name types.NamespacedName, port *corev1.ServicePort, ports *servicePorts) (int32, *Problem) {
	if ports.targets == nil {
		r.readTargets(name, ports)
	}
	if ports.count > maxEndpointPortsPerService {
		return 0, routeProblem(conditions.ReasonBackendNotFound,
			"the EndpointSlices of headless Service %s have more than %d ports together, so the controller does not read the number of the named target port %q. Set targetPort to a number",
			name, maxEndpointPortsPerService, port.TargetPort.StrVal)
	}
	lowest := ports.targets[port.Name]
	if lowest == 0 {
		return 0, routeProblem(conditions.ReasonBackendNotFound,
			"headless Service %s has the named target port %q, and no EndpointSlice contains its number", name, port.TargetPort.StrVal)
	}
	return lowest, nil
}

// readTargets reads the ports in a Service's EndpointSlices, unless they exceed the
// limit. When pods have different numbers for a port, it keeps the lowest, because an
// ingress rule has one port.
func (r backendResolver) readTargets(name types.NamespacedName, ports *servicePorts) {
	ports.targets = map[string]int32{}
	for _, slice := range r.slices.Value(name) {
		ports.count += len(slice.Ports)
	}
	if ports.count > maxEndpointPortsPerService {
		return
	}
	for _, slice := range r.slices.Value(name) {
		for _, p := range slice.Ports {
			if p.Port == nil || !routing.IsPort(*p.Port) {
				continue
			}
			if lowest := ports.targets[ptr.Deref(p.Name, "")]; lowest == 0 || *p.Port < lowest {
				ports.targets[ptr.Deref(p.Name, "")] = *p.Port
			}
		}
	}
}
