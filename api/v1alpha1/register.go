package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the types in this package.
const GroupName = "tunnelgateway.dev"

// BundleVersionAnnotation of a CustomResourceDefinition holds the version of the
// release that it comes with: a semantic version with its v. A marker at
// TunnelConfiguration sets it; it is that of the chart, and a test holds the two
// together.
const BundleVersionAnnotation = "tunnelgateway.dev/bundle-version"

var (
	// GroupVersion is the group and the version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// Install adds the types in this package to a scheme.
	Install = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TunnelConfiguration{}, &TunnelConfigurationList{}, &Tunnel{}, &TunnelList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
