package envoy

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// hashDigits is the length of the hash at the end of a cluster's name.
const hashDigits = 16

// ClusterName is the name of a cluster with the backend that it contains. Envoy repeats
// the names when it connects to another leader, which then knows the backends even if it
// cannot build the Gateway's routes.
type ClusterName struct {
	Name string
	// Source is the Service or ServiceImport.
	Source EndpointSource
	// Port is the port number of the source.
	Port int32
}

// ParseClusterName parses the name of a cluster. ok is false if the controller gives no
// cluster such a name.
func ParseClusterName(name string) (parsed ClusterName, ok bool) {
	rest, ok := strings.CutPrefix(name, ClusterPrefix)
	if !ok {
		if rest, ok = strings.CutPrefix(name, ImportPrefix); !ok {
			return ClusterName{}, false
		}
		parsed.Source.Import = true
	}
	const parts = 4
	split := strings.SplitN(rest, ".", parts+1)
	if len(split) != parts || !isLabel(split[0]) || !isLabel(split[1]) || !isHash(split[3]) {
		return ClusterName{}, false
	}
	port, err := strconv.ParseUint(split[2], 10, 16)
	if err != nil || port == 0 || strconv.FormatUint(port, 10) != split[2] {
		return ClusterName{}, false
	}
	parsed.Name, parsed.Port = name, int32(port)
	parsed.Source.NamespacedName = types.NamespacedName{Namespace: split[0], Name: split[1]}
	return parsed, true
}

// isLabel reports whether the text is a DNS label, as names of namespaces and Services
// are.
func isLabel(text string) bool {
	const maxLength = 63
	if text == "" || len(text) > maxLength || text[0] == '-' || text[len(text)-1] == '-' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; c != '-' && !isDigit(c) && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

func isHash(text string) bool {
	if len(text) != hashDigits {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isDigit(c) && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// EndpointsOf returns the cluster for [Assign], with the Service as it is now. ok is
// false if the Service no longer has the port, or has another owner's addresses because
// its type is ExternalName: the cluster then has no endpoints.
func (n ClusterName) EndpointsOf(service *corev1.Service, limit int) (e EndpointsOf, ok bool) {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		return EndpointsOf{}, false
	}
	for i := range service.Spec.Ports {
		if p := &service.Spec.Ports[i]; n.isPort(p.Port, p.Protocol) {
			return n.endpointsOf(p.Name, service.Spec.IPFamilies, limit), true
		}
	}
	return EndpointsOf{}, false
}

// ImportedEndpointsOf is like [ClusterName.EndpointsOf] for a ServiceImport.
func (n ClusterName) ImportedEndpointsOf(object *multicluster.ServiceImport, limit int) (e EndpointsOf, ok bool) {
	for i := range object.Spec.Ports {
		if p := &object.Spec.Ports[i]; n.isPort(p.Port, p.Protocol) {
			return n.endpointsOf(p.Name, object.Spec.IPFamilies, limit), true
		}
	}
	return EndpointsOf{}, false
}

func (n ClusterName) isPort(number int32, protocol corev1.Protocol) bool {
	return number == n.Port && (protocol == corev1.ProtocolTCP || protocol == "")
}

func (n ClusterName) endpointsOf(portName string, families []corev1.IPFamily, limit int) EndpointsOf {
	e := EndpointsOf{Cluster: n.Name, Service: n.Source.NamespacedName, Import: n.Source.Import, PortName: portName, Limit: limit}
	if len(families) > 0 {
		e.Family = families[0]
	}
	return e
}
