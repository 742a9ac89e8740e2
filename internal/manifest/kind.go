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

// unknownField is the detail of the error about a field that the kind does not
// have.
const unknownField = "unknown field"

// kind is a supported kind of object.
type kind struct {
	// stored is the group, version and kind of the decoded objects.
	stored schema.GroupVersionKind
	// served are the versions that a manifest may use. Their schemas are the same
	// as the schema of the stored version.
	served     []string
	namespaced bool
	// decode validates and decodes an object of the stored version. It may change
	// its argument.
	decode func(*unstructured.Unstructured) (client.Object, []error)
}

// kinds are the loaders of the supported kinds. A kind is loaded for its first
// object, because compiling validation rules takes time.
var kinds = map[schema.GroupKind]func() (kind, error){
	{Group: gatewayv1.GroupName, Kind: "GatewayClass"}:   customKind(gatewayCRDs, "gatewayclasses"),
	{Group: gatewayv1.GroupName, Kind: "Gateway"}:        customKind(gatewayCRDs, "gateways"),
	{Group: gatewayv1.GroupName, Kind: "ListenerSet"}:    customKind(gatewayCRDs, "listenersets"),
	{Group: gatewayv1.GroupName, Kind: "HTTPRoute"}:      customKind(gatewayCRDs, "httproutes"),
	{Group: gatewayv1.GroupName, Kind: "GRPCRoute"}:      customKind(gatewayCRDs, "grpcroutes"),
	{Group: gatewayv1.GroupName, Kind: "ReferenceGrant"}: customKind(gatewayCRDs, "referencegrants"),

	{Group: v1alpha1.GroupName, Kind: "TunnelConfiguration"}: customKind(projectCRDs, "tunnelconfigurations"),
	{Group: v1alpha1.GroupName, Kind: "Tunnel"}:              customKind(projectCRDs, "tunnels"),

	{Kind: "Namespace"}: coreKind(corev1.SchemeGroupVersion.WithKind("Namespace"), false, apivalidation.NameIsDNSLabel),
	{Kind: "Service"}:   coreKind(corev1.SchemeGroupVersion.WithKind("Service"), true, apivalidation.NameIsDNSLabel),
	{Kind: "Secret"}:    coreKind(corev1.SchemeGroupVersion.WithKind("Secret"), true, apivalidation.NameIsDNSSubdomain),
	{Group: discoveryv1.GroupName, Kind: "EndpointSlice"}: coreKind(
		discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), true, apivalidation.NameIsDNSSubdomain),
}

var scheme = Scheme()

// Scheme returns a new scheme with all types that [Read] returns. The type of a
// ReferenceGrant is v1beta1, the version in which the API server stores it.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(gatewayv1.Install(s))
	utilruntime.Must(gatewayv1beta1.Install(s))
	utilruntime.Must(v1alpha1.Install(s))
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(discoveryv1.AddToScheme(s))
	return s
}

// convert converts an object to the stored version and decodes it. It sorts the
// errors, because the validators process fields in random order.
func (k kind) convert(u *unstructured.Unstructured) (client.Object, []error) {
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

// newObject returns an empty object of a kind that [Scheme] contains.
func newObject(gvk schema.GroupVersionKind) (client.Object, error) {
	object, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return object.(client.Object), nil
}

// toErrors converts a list of field errors, and replaces regular expressions in them by
// examples. Some errors of the schema validator
// have no path: only their details contain the field.
func toErrors(list field.ErrorList) []error {
	var noPath *field.Path
	errs := make([]error, len(list))
	for i, err := range list {
		describePattern(err)
		errs[i] = err
		if err.Field == noPath.String() {
			errs[i] = errors.New(err.Detail)
		}
	}
	return errs
}
