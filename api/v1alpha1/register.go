package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group for the types in this package.
const GroupName = "tunnelgateway.dev"

// BundleVersionAnnotation on a CustomResourceDefinition is the release that contains
// it: a semantic version with the prefix v. Markers on the types set it. A test
// compares it with the chart version.
const BundleVersionAnnotation = "tunnelgateway.dev/bundle-version"

var (
	// GroupVersion is the API group and version for the types in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// Install adds the types in this package to a scheme.
	Install = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &TunnelConfiguration{}, &TunnelConfigurationList{}, &Tunnel{}, &TunnelList{}, &AccessPolicy{}, &AccessPolicyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
