package gateway

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// maxImportIPs limits the addresses of one ServiceImport. The API has at most two.
const maxImportIPs = 16

// importedBackend is what references to a ServiceImport have in common.
type importedBackend struct {
	// problem is why no reference resolves, or nil.
	problem *Problem
	// ips are the canonical addresses with the first one's IP version, separated by commas.
	ips    string
	family corev1.IPFamily
	// ports are the TCP ports. The first port with a number counts.
	ports map[gatewayv1.PortNumber]*multicluster.ServicePort
}

// missingCRD is the problem with references to ServiceImports in a cluster that has none.
func missingCRD(name types.NamespacedName) *Problem {
	return routeProblem(conditions.ReasonInvalidKind,
		"backend %q is a ServiceImport, and the cluster has no CRD %s. Install an implementation of the Multi-Cluster Services API", name.Name, multicluster.CRD)
}

// resolveImport returns the backend for a port of a ServiceImport, or why there is none.
func (r backendResolver) resolveImport(name types.NamespacedName, number gatewayv1.PortNumber) (routing.Backend, *Problem) {
	if len(validation.IsDNS1123Label(name.Name)) > 0 {
		// Cluster names and names in certificates contain it.
		return routing.Backend{}, routeProblem(conditions.ReasonBackendNotFound,
			"ServiceImport %s gets no requests, because its name is not a DNS label, as the name of an exported Service is", name)
	}
	found, ok := r.importedBackends[name]
	if !ok {
		found = r.newImportedBackend(name)
		r.importedBackends[name] = found
	}
	if found.problem != nil {
		return routing.Backend{}, found.problem
	}
	port := found.ports[number]
	if port == nil {
		return routing.Backend{}, routeProblem(conditions.ReasonBackendNotFound, "ServiceImport %s has no TCP port %d", name, number)
	}
	protocol, problem := r.protocol(multicluster.KindServiceImport, name, port.Port, port.AppProtocol)
	if problem != nil {
		return routing.Backend{}, problem
	}
	return routing.Backend{
		Service: name, Import: true, IPs: found.ips, Headless: found.ips == "", Family: found.family,
		Port: port.Port, ServicePort: port.Port, PortName: port.Name, Protocol: protocol,
	}, nil
}

func (r backendResolver) newImportedBackend(name types.NamespacedName) *importedBackend {
	object := r.imports[name]
	if object == nil {
		return &importedBackend{problem: routeProblem(conditions.ReasonBackendNotFound, "ServiceImport %s does not exist", name)}
	}
	b := &importedBackend{ports: importedPorts(object)}
	if b.ips, b.problem = r.importIPs(name, object.Spec.IPs); b.problem == nil {
		b.problem = newSliceProblem(multicluster.KindServiceImport, name, r.importSlices[name], r.isReserved)
	}
	if object.Spec.Type == multicluster.TypeHeadless {
		b.ips = ""
	}
	if b.problem == nil && b.ips == "" && !r.capabilities.FollowsEndpoints {
		b.problem = routeProblem(conditions.ReasonBackendNotFound, "ServiceImport %s is headless or has no address in spec.ips, which ingress rules need. %s", name, remedyEnvoy)
	}
	if len(object.Spec.IPFamilies) > 0 {
		b.family = object.Spec.IPFamilies[0]
	}
	return b
}

// importedPorts returns the valid TCP ports by number. The first of several counts.
func importedPorts(object *multicluster.ServiceImport) map[gatewayv1.PortNumber]*multicluster.ServicePort {
	ports := map[gatewayv1.PortNumber]*multicluster.ServicePort{}
	for i := range object.Spec.Ports {
		p := &object.Spec.Ports[i]
		if (p.Protocol == corev1.ProtocolTCP || p.Protocol == "") && routing.IsPort(p.Port) && ports[p.Port] == nil {
			ports[p.Port] = p
		}
	}
	return ports
}

// importIPs returns the canonical addresses with the first one's IP version. Envoys need
// not have addresses with both versions. The API server does not check the addresses, so
// an address that no backend may have is a problem with the whole ServiceImport.
func (r backendResolver) importIPs(name types.NamespacedName, written []string) (string, *Problem) {
	problem := func(format string, args ...any) (string, *Problem) {
		return "", routeProblem(conditions.ReasonBackendNotFound, "ServiceImport %s gets no requests, because %s", name, fmt.Sprintf(format, args...))
	}
	if len(written) > maxImportIPs {
		return problem("spec.ips has more than %d addresses", maxImportIPs)
	}
	var ips []string
	for i, text := range written {
		ip := routing.CanonicalIP(text)
		if ip == "" {
			return problem("spec.ips[%d] is not an IP address", i)
		}
		if refused := routing.RefusedAddress(ip, r.isReserved); refused != "" {
			return problem("spec.ips contains %s, %s", ip, refused)
		}
		if len(ips) == 0 || strings.Contains(ips[0], ":") == strings.Contains(ip, ":") {
			ips = append(ips, ip)
		}
	}
	return strings.Join(ips, ","), nil
}
