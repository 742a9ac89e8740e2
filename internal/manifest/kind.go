package manifest

import (
	"cmp"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// unknownField is what an error says of a field that the kind does not have.
const unknownField = "unknown field"

// kind is a kind of object that is read.
type kind struct {
	// stored is the version and kind of the objects that are returned.
	stored schema.GroupVersionKind
	// served are the versions in which a document may be written. They differ
	// from the stored one in name only.
	served     []string
	namespaced bool
	// decode takes an object in the stored version, which it may change.
	decode func(*unstructured.Unstructured) (client.Object, []error)
}

// kinds are the kinds that are read. What a kind needs is made when its first
// document is met, because compiling validation rules takes time.
var kinds = map[schema.GroupKind]func() (kind, error){
	{Group: gatewayv1.GroupName, Kind: "GatewayClass"}:   customKind(gatewayCRDs, "gatewayclasses"),
	{Group: gatewayv1.GroupName, Kind: "Gateway"}:        customKind(gatewayCRDs, "gateways"),
	{Group: gatewayv1.GroupName, Kind: "ListenerSet"}:    customKind(gatewayCRDs, "listenersets"),
	{Group: gatewayv1.GroupName, Kind: "HTTPRoute"}:      customKind(gatewayCRDs, "httproutes"),
	{Group: gatewayv1.GroupName, Kind: "GRPCRoute"}:      customKind(gatewayCRDs, "grpcroutes"),
	{Group: gatewayv1.GroupName, Kind: "ReferenceGrant"}: customKind(gatewayCRDs, "referencegrants"),

	{Group: v1alpha1.GroupName, Kind: "TunnelConfiguration"}: customKind(ownCRDs, "tunnelconfigurations"),
	{Group: v1alpha1.GroupName, Kind: "Tunnel"}:              customKind(ownCRDs, "tunnels"),

	{Kind: "Namespace"}: coreKind(corev1.SchemeGroupVersion.WithKind("Namespace"), false, apivalidation.NameIsDNSLabel),
	{Kind: "Service"}:   coreKind(corev1.SchemeGroupVersion.WithKind("Service"), true, apivalidation.NameIsDNSLabel),
	{Kind: "Secret"}:    coreKind(corev1.SchemeGroupVersion.WithKind("Secret"), true, apivalidation.NameIsDNSSubdomain),
	{Group: discoveryv1.GroupName, Kind: "EndpointSlice"}: coreKind(
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), true, apivalidation.NameIsDNSSubdomain),
}

var scheme = Scheme()

// Scheme returns a new scheme of all types that [Read] returns. ReferenceGrants
// are read as v1beta1, the version in which the API server stores them.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(gatewayv1.Install(s))
	utilruntime.Must(gatewayv1beta1.Install(s))
	utilruntime.Must(v1alpha1.Install(s))
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(discoveryv1.AddToScheme(s))
	return s
}

// read converts an object to the stored version and decodes it. The errors are
// sorted, because the validators look at fields in the order of a map.
func (k kind) read(u *unstructured.Unstructured) (client.Object, []error) {
	if !slices.Contains(k.served, u.GroupVersionKind().Version) {
		served := make([]string, len(k.served))
		for i, version := range k.served {
			served[i] = schema.GroupVersion{Group: k.stored.Group, Version: version}.String()
		}
		return nil, []error{field.NotSupported(field.NewPath("apiVersion"), u.GetAPIVersion(), served)}
	}
	u.SetGroupVersionKind(k.stored)
	object, errs := k.decode(u)
	slices.SortStableFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return object, errs
}

// newObject returns an empty object of the kind, which [Scheme] must know.
func newObject(gvk schema.GroupVersionKind) (client.Object, error) {
	object, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return object.(client.Object), nil
}

// asErrors widens a list of field errors. Some of the schema validator's have no
// path, but name their fields in the detail.
func asErrors(list field.ErrorList) []error {
	var noPath *field.Path
	errs := make([]error, len(list))
	for i, err := range list {
		errs[i] = err
		if err.Field == noPath.String() {
			errs[i] = errors.New(err.Detail)
		}
	}
	return errs
}
