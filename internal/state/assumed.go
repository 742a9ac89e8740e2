package state

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// serviceKey returns the key of the Service that a backendRef names, and false for another
// kind.
func serviceKey(ref gatewayv1.BackendObjectReference, namespace string) (objectKey, bool) {
	key := objectKey{"Service", types.NamespacedName{
		Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name),
	}}
	return key, ptr.Deref(ref.Group, "") == "" && ptr.Deref(ref.Kind, "Service") == "Service"
}

// newAssumedService returns a Service that the user may not read. It is headless, because
// its ClusterIP is not known.
func newAssumedService(name types.NamespacedName) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
}

// addAssumedPort adds the port in a route's reference to the Service.
func addAssumedPort(s *corev1.Service, port *gatewayv1.PortNumber, route client.Object) {
	if port == nil {
		return
	}
	i := slices.IndexFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == *port })
	if i < 0 {
		i = len(s.Spec.Ports)
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: *port, TargetPort: intstr.FromInt32(*port), Protocol: corev1.ProtocolTCP})
	}
	s.Spec.Ports[i].AppProtocol = cmp.Or(assumedProtocol(route), s.Spec.Ports[i].AppProtocol)
}

// assumedHTTPS is the appProtocol that ingress rules require for gRPC.
var assumedHTTPS = ptr.To("https")

// assumedProtocol returns the appProtocol of a port to which the route refers. Without it, a
// decision would say that a GRPCRoute with ingress rules is not supported.
func assumedProtocol(route client.Object) *string {
	if _, isGRPC := route.(*gatewayv1.GRPCRoute); isGRPC {
		return assumedHTTPS
	}
	return nil
}

// assumedImports returns the ServiceImports in namespaces that the user may not read. They are
// headless, because their addresses are not known.
func (r *reading) assumedImports(manifests []client.Object) []client.Object {
	imports := map[types.NamespacedName]*multicluster.ServiceImport{}
	for _, object := range slices.Concat(r.objects, manifests) {
		for _, ref := range backendRefs(object) {
			name := types.NamespacedName{
				Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(object.GetNamespace()))), Name: string(ref.Name),
			}
			isImport := ptr.Deref(ref.Group, "") == multicluster.GroupName && ptr.Deref(ref.Kind, "") == multicluster.KindServiceImport
			if !isImport || ref.Port == nil || r.isRead(kinds.ServiceImport, name.Namespace) {
				continue
			}
			if imports[name] == nil {
				imports[name] = &multicluster.ServiceImport{
					ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name},
					Spec:       multicluster.ServiceImportSpec{Type: multicluster.TypeHeadless},
				}
			}
			addAssumedImportPort(imports[name], *ref.Port, object)
		}
	}
	var assumed []client.Object
	for _, name := range slices.SortedFunc(maps.Keys(imports), compareNames) {
		assumed = append(assumed, imports[name])
		r.servesImports = true
	}
	return assumed
}

// addAssumedImportPort adds the port in a route's reference to the ServiceImport.
func addAssumedImportPort(s *multicluster.ServiceImport, port gatewayv1.PortNumber, route client.Object) {
	i := slices.IndexFunc(s.Spec.Ports, func(p multicluster.ServicePort) bool { return p.Port == port })
	if i < 0 {
		i = len(s.Spec.Ports)
		s.Spec.Ports = append(s.Spec.Ports, multicluster.ServicePort{Port: port, Protocol: corev1.ProtocolTCP})
	}
	s.Spec.Ports[i].AppProtocol = cmp.Or(assumedProtocol(route), s.Spec.Ports[i].AppProtocol)
}

// assumedGrants returns ReferenceGrants that permit the references to namespaces whose
// ReferenceGrants the user may not read.
func (r *reading) assumedGrants(manifests []client.Object) []client.Object {
	grants := map[string]*gatewayv1beta1.ReferenceGrant{}
	var assumed []client.Object
	for _, object := range slices.Concat(r.objects, manifests) {
		for _, namespace := range targetNamespaces(object) {
			if r.isRead(kinds.ReferenceGrant, namespace) {
				continue
			}
			if grants[namespace] == nil {
				grants[namespace] = newAssumedGrant(namespace)
				assumed = append(assumed, grants[namespace])
			}
			from := gatewayv1.ReferenceGrantFrom{
				Group: gatewayv1.GroupName, Kind: gatewayv1.Kind(KindOf(object)), Namespace: gatewayv1.Namespace(object.GetNamespace()),
			}
			if spec := &grants[namespace].Spec; !slices.Contains(spec.From, from) {
				spec.From = append(spec.From, from)
			}
		}
	}
	return assumed
}

// newAssumedGrant returns a ReferenceGrant for all targets. Its name is not a valid one, so
// that no object has it.
func newAssumedGrant(namespace string) *gatewayv1beta1.ReferenceGrant {
	return &gatewayv1beta1.ReferenceGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "(not read)"},
		Spec: gatewayv1.ReferenceGrantSpec{To: []gatewayv1.ReferenceGrantTo{
			{Kind: "Service"}, {Kind: "Secret"}, {Group: multicluster.GroupName, Kind: multicluster.KindServiceImport},
		}},
	}
}
