package gateway_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// randomReserved is the address of a connector.
const randomReserved = "10.244.0.9"

// importRef changes the reference to name a ServiceImport, and creates most of these.
func (d *randomizer) importRef(ref gatewayv1.HTTPBackendRef, key types.NamespacedName) gatewayv1.HTTPBackendRef {
	ref.Group, ref.Kind = new(gatewayv1.Group(multicluster.GroupName)), new(gatewayv1.Kind(multicluster.KindServiceImport))
	if d.chance(20) {
		ref.Namespace = new(gatewayv1.Namespace(pick(d, randomNamespaces...)))
		key.Namespace = string(*ref.Namespace)
	}
	if d.chance(5) {
		*ref.Port = 53
	}
	if d.chance(5) {
		return ref
	}
	valid := fmt.Sprintf("10.42.%d.%d", d.IntN(250), 1+d.IntN(250))
	found := &multicluster.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: multicluster.ServiceImportSpec{
		Type: pick(d, "ClusterSetIP", "ClusterSetIP", "ClusterSetIP", "Headless"),
		IPs: pick(d, []string{valid}, []string{valid}, []string{valid, "2001:db8::7"}, []string{"2001:DB8:0::8", valid}, []string{"::ffff:10.42.251.1"}, nil,
			[]string{valid, "::ffff:127.0.0.1"}, []string{"010.244.000.009"}, []string{"fe80::1"}, []string{"web.svc"}, []string{valid, ""}),
		Ports: []multicluster.ServicePort{
			{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53}, {Name: "quic", Protocol: corev1.ProtocolUDP, Port: 8080}, {Name: "web", Port: 8080},
		},
	}}
	if d.chance(30) {
		found.Spec.Ports[2].AppProtocol = new(pick(d, "https", "http", "kubernetes.io/h2c", "mysql"))
	}
	d.snapshot.ServiceImports[key], d.snapshot.ImportedSlices[key] = found, nil
	for i := range d.IntN(3) {
		d.snapshot.ImportedSlices[key] = append(d.snapshot.ImportedSlices[key], &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: fmt.Sprintf("%s-%d", key.Name, i)}, AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}, {Addresses: []string{pick(d, "10.0.0.2", "10.0.0.3", "10.0.0.4", "169.254.169.254", randomReserved)}}},
		})
	}
	return ref
}

// importHost returns the first address of a ServiceImport in a URL, or "".
func importHost(s *multicluster.ServiceImport) string {
	if s.Spec.Type == "Headless" || len(s.Spec.IPs) == 0 {
		return ""
	}
	host := netip.MustParseAddr(s.Spec.IPs[0]).Unmap().String()
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// importURL returns the URL of a ServiceImport's port, and false when it does not resolve.
func (o *oracle) importURL(name types.NamespacedName, number gatewayv1.PortNumber) (string, bool) {
	found := o.snapshot.ServiceImports[name]
	if found == nil || !o.areImportedAddressesPermitted(found) {
		return "", false
	}
	host := importHost(found)
	if host == "" && !o.envoy {
		return "", false // ingress rules name an address
	}
	host = cmp.Or(host, name.Name+"."+name.Namespace+".svc.clusterset.local")
	schemes := map[string]string{"": "http", "http": "http", "https": "https"}
	if o.everything {
		schemes["kubernetes.io/h2c"] = "h2c"
	}
	for _, port := range found.Spec.Ports {
		if port.Port != number || port.Protocol == corev1.ProtocolUDP {
			continue
		}
		protocol := ""
		if port.AppProtocol != nil {
			protocol = *port.AppProtocol
		}
		scheme, ok := schemes[protocol]
		return fmt.Sprintf("%s://%s:%d", scheme, host, port.Port), ok
	}
	return "", false
}

// areImportedAddressesPermitted reports whether backends may have every address of the
// ServiceImport.
func (o *oracle) areImportedAddressesPermitted(found *multicluster.ServiceImport) bool {
	permitted := func(text string) bool {
		ip, err := netip.ParseAddr(text)
		ip = ip.Unmap()
		return err == nil && ip.IsGlobalUnicast() && !o.snapshot.Reserved[ip.String()]
	}
	all := slices.Clone(found.Spec.IPs)
	for _, slice := range o.snapshot.ImportedSlices[types.NamespacedName{Namespace: found.Namespace, Name: found.Name}] {
		for _, endpoint := range slice.Endpoints {
			all = append(all, endpoint.Addresses...)
		}
	}
	return !slices.ContainsFunc(all, func(text string) bool { return !permitted(text) })
}
