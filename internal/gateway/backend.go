package gateway

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// backendResolver finds the backends that backendRefs name. It resolves each Service port
// once, because any number of backendRefs can name it.
type backendResolver struct {
	grants       grants
	services     byname.Map[*corev1.Service]
	slices       byname.Map[[]*discoveryv1.EndpointSlice]
	capabilities routing.Capabilities
	isReserved   func(ip string) bool
	imports      map[types.NamespacedName]*multicluster.ServiceImport
	importSlices map[types.NamespacedName][]*discoveryv1.EndpointSlice
	// noImports reports whether the cluster has no ServiceImports.
	noImports bool
	// envoy has the capabilities of Envoy if the data plane has ingress rules, or nil.
	envoy *routing.Capabilities
	// addresses is the setting connector.envoy.backends.
	addresses v1alpha1.BackendAddresses

	tls *backendTLS
	// used are the Services that backendRefs name which may do so.
	used map[types.NamespacedName]bool

	resolved map[servicePortKey]resolvedBackend
	ports    map[types.NamespacedName]*servicePorts
	// refused are the problems with addresses, or nil.
	refused map[types.NamespacedName]*Problem
	// importedBackends are the ServiceImports that references name.
	importedBackends map[types.NamespacedName]*importedBackend
}

type servicePortKey struct {
	service types.NamespacedName
	number  gatewayv1.PortNumber
}

// resolvedBackend is the backend of a port, or why the port does not resolve.
type resolvedBackend struct {
	backend routing.Backend
	problem *Problem
}

func newBackendResolver(s *Snapshot, permitted grants, controller gatewayv1.GatewayController, c routing.Capabilities, addresses v1alpha1.BackendAddresses) backendResolver {
	return backendResolver{
		grants: permitted, services: s.Services, slices: s.EndpointSlices, capabilities: c, isReserved: s.isReserved, addresses: addresses,
		imports: s.ServiceImports, importSlices: s.ImportedSlices, noImports: s.NoServiceImports,
		tls: newBackendTLS(s, controller, c), used: map[types.NamespacedName]bool{},
		resolved: map[servicePortKey]resolvedBackend{}, ports: map[types.NamespacedName]*servicePorts{},
		refused:          map[types.NamespacedName]*Problem{},
		importedBackends: map[types.NamespacedName]*importedBackend{},
	}
}

// resolve returns the port that ref names in the route, or why the reference does not
// resolve.
func (r backendResolver) resolve(ref gatewayv1.BackendObjectReference, route *Route) (routing.Backend, *Problem) {
	group, kind := string(ptr.Deref(ref.Group, "")), string(ptr.Deref(ref.Kind, "Service"))
	isImport := group == multicluster.GroupName && kind == multicluster.KindServiceImport
	if !isImport && (group != "" || kind != "Service") {
		return routing.Backend{}, routeProblem(conditions.ReasonInvalidKind,
			"backend %q has kind %s in group %q; only Services of the core group and ServiceImports of the group %s are supported", ref.Name, kind, group, multicluster.GroupName)
	}
	name := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(route.Namespace))), Name: string(ref.Name)}
	if isImport && r.noImports {
		return routing.Backend{}, missingCRD(name)
	}
	if !r.grants.permits(referrer{route.Kind, route.Namespace}, target{group, kind, name.Namespace, name.Name}) {
		// The grant is checked before the object is read. The message must not reveal
		// whether the object exists.
		return routing.Backend{}, routeProblem(conditions.ReasonRefNotPermitted,
			"%s %s is in another namespace, and no ReferenceGrant there permits references from %ss in namespace %q", kind, name, route.Kind, route.Namespace)
	}
	if isImport {
		return r.resolveImport(name, ptr.Deref(ref.Port, 0))
	}
	return r.resolvePort(servicePortKey{name, ptr.Deref(ref.Port, 0)}, route.Kind)
}

// resolvePort returns the Service port for a reference in a route of the kind.
func (r backendResolver) resolvePort(key servicePortKey, routeKind string) (routing.Backend, *Problem) {
	found, ok := r.resolved[key]
	if !ok {
		r.used[key.service] = true
		found.backend, found.problem = r.resolveService(key.service, key.number)
		r.resolved[key] = found
	}
	if found.problem == nil && r.usesClusterIP(found.backend, routeKind) {
		if refused := r.refusedSlice(key.service); refused != nil {
			return routing.Backend{}, refused
		}
	}
	return found.backend, found.problem
}

// usesClusterIP reports whether Envoy sends the route's requests to the ClusterIP, where it
// cannot leave out single addresses.
func (r backendResolver) usesClusterIP(b routing.Backend, kind string) bool {
	return r.capabilities.FollowsEndpoints && b.UsesClusterIP(b.UsesHTTP2(kind, false))
}

func (r backendResolver) resolveService(name types.NamespacedName, number gatewayv1.PortNumber) (routing.Backend, *Problem) {
	service := r.services.Value(name)
	if service == nil {
		return routing.Backend{}, routeProblem(conditions.ReasonBackendNotFound, "Service %s does not exist", name)
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return routing.Backend{}, routeProblem(conditions.ReasonInvalidKind, "Service %s has type ExternalName, which is not supported because it can point to any host, such as one inside the cluster. For a host outside the cluster, see docs/guides/outside-hosts.md", name)
	}
	ports := r.portsOf(name, service)
	port := ports.byNumber[number]
	if port == nil {
		return routing.Backend{}, routeProblem(conditions.ReasonBackendNotFound, "Service %s has no TCP port %d", name, number)
	}
	protocol, problem := r.protocol("Service", name, port.Port, port.AppProtocol)
	if problem != nil {
		return routing.Backend{}, problem
	}
	dial, problem := r.port(name, service, port, ports)
	if problem != nil {
		return routing.Backend{}, problem
	}
	backend := routing.Backend{
		Service: name, Port: dial, Protocol: protocol, Headless: service.Spec.ClusterIP == corev1.ClusterIPNone,
		ServicePort: port.Port, PortName: port.Name, Addressing: r.addressing(service),
		ClientAffinity: r.capabilities.FollowsEndpoints && service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP,
	}
	if len(service.Spec.IPFamilies) > 0 {
		backend.Family = service.Spec.IPFamilies[0]
	}
	if !backend.Headless {
		backend.ClusterIP = routing.CanonicalIP(service.Spec.ClusterIP)
	}
	if r.capabilities.NeedsClusterIP && !backend.Headless && backend.ClusterIP == "" {
		return routing.Backend{}, routeProblem(conditions.ReasonBackendNotFound, "Service %s has no ClusterIP yet", name)
	}
	return r.withTLS(backend)
}

// withTLS adds how a BackendTLSPolicy makes the data plane connect, which replaces the
// appProtocol https. The appProtocol h2c means HTTP/2 over TLS then.
func (r backendResolver) withTLS(b routing.Backend) (routing.Backend, *Problem) {
	tls, problem := r.tls.connect(b.Service, b.ServicePort, b.PortName, b.Protocol == routing.ProtocolH2C)
	if problem != nil {
		return routing.Backend{}, problem
	}
	if tls != nil {
		b.TLS, b.Protocol = tls, routing.ProtocolHTTPS
	}
	return b, nil
}

// protocol maps a port's appProtocol (KEP-3726) to a protocol that the data plane
// supports. Letter case does not matter, as in the registry of service names.
func (r backendResolver) protocol(kind string, name types.NamespacedName, port int32, written *string) (routing.Protocol, *Problem) {
	appProtocol := ptr.Deref(written, "")
	known, isKnown := appProtocols[strings.ToLower(appProtocol)]
	if slices.Contains(r.capabilities.Protocols, known) {
		return known, nil
	}
	problem := routeProblem(conditions.ReasonUnsupportedProtocol, "port %d of %s %s has appProtocol %q, which a tunnel does not support", port, kind, name, appProtocol)
	if isKnown && r.envoy != nil && slices.Contains(r.envoy.Protocols, known) {
		problem = routeProblem(conditions.ReasonUnsupportedProtocol, "port %d of %s %s has appProtocol %q, which is not supported by ingress rules. %s", port, kind, name, appProtocol, remedyEnvoy)
	}
	return 0, problem
}

var appProtocols = map[string]routing.Protocol{
	"": routing.ProtocolHTTP, "http": routing.ProtocolHTTP, "kubernetes.io/ws": routing.ProtocolHTTP,
	"https": routing.ProtocolHTTPS, "kubernetes.io/wss": routing.ProtocolHTTPS,
	"kubernetes.io/h2c": routing.ProtocolH2C,
}

func routeProblem(reason conditions.Reason, format string, args ...any) *Problem {
	return &Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
