package envoy

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ImportPrefix begins the name of every cluster for a ServiceImport.
const ImportPrefix = "i."

// hashDigits is the length of the hash at the end of a cluster's name.
const hashDigits = 16

// ClusterName is the name of a cluster with the backend that it contains. Envoy repeats
// the names when it connects to another leader, which then knows the backends even if it
// cannot build the Gateway's routes.
type ClusterName struct {
	Name string
	// IsImport reports whether the backend is a ServiceImport, and not a Service.
	IsImport bool
	Service  types.NamespacedName
	// Port is the port number of the Service.
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
		parsed.IsImport = true
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
	parsed.Service = types.NamespacedName{Namespace: split[0], Name: split[1]}
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
		p := &service.Spec.Ports[i]
		if p.Port != n.Port || p.Protocol != corev1.ProtocolTCP && p.Protocol != "" {
			continue
		}
		e = EndpointsOf{Cluster: n.Name, Service: n.Service, PortName: p.Name, Limit: limit}
		if len(service.Spec.IPFamilies) > 0 {
			e.Family = service.Spec.IPFamilies[0]
		}
		return e, true
	}
	return EndpointsOf{}, false
}
