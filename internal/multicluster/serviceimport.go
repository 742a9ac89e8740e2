// Package multicluster has the part of the Multi-Cluster Services API (KEP-1645) that
// decisions read. The API's versions equal each other in this part, and the module that
// defines them would add many dependencies.
package multicluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// GroupName is the API group.
	GroupName = "multicluster.x-k8s.io"
	// KindServiceImport is the kind of ServiceImports.
	KindServiceImport = "ServiceImport"
	// CRD is the name of the CustomResourceDefinition of ServiceImports.
	CRD = "serviceimports." + GroupName
	// LabelServiceName is the label of EndpointSlices that names their ServiceImport.
	LabelServiceName = "multicluster.kubernetes.io/service-name"
	// DNSDomain is the domain of the names of ServiceImports. Certificates of backends can
	// have these names.
	DNSDomain = "clusterset.local"
	// TypeHeadless is the type of ServiceImports without an address.
	TypeHeadless = "Headless"
)

// GroupVersion is the version to which ServiceImports are converted.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta1"}

// Versions returns the versions in which ServiceImports can be read, the newest first.
func Versions() []string { return []string{"v1", "v1beta1", "v1alpha1"} }

// ServiceImport is a Service that other clusters export.
type ServiceImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ServiceImportSpec `json:"spec,omitempty"`
}

// ServiceImportSpec has the addresses and ports of a ServiceImport. Neither the API server
// nor the schema checks the addresses and the numbers.
type ServiceImportSpec struct {
	// Type is ClusterSetIP or Headless.
	Type string `json:"type,omitempty"`
	// IPs are the addresses, which load-balance to all clusters.
	IPs        []string          `json:"ips,omitempty"`
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`
	Ports      []ServicePort     `json:"ports,omitempty"`
}

// ServicePort is a port of a ServiceImport.
type ServicePort struct {
	// Name is the name of the port in EndpointSlices.
	Name        string          `json:"name,omitempty"`
	Protocol    corev1.Protocol `json:"protocol,omitempty"`
	AppProtocol *string         `json:"appProtocol,omitempty"`
	Port        int32           `json:"port"`
}

// ServiceImportList is a list of ServiceImports.
type ServiceImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ServiceImport `json:"items"`
}

// Install adds the kinds to the scheme.
func Install(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ServiceImport{}, &ServiceImportList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// FromUnstructured returns the ServiceImport in any version's content. If a version defines
// a field in another way, the result has no spec, so that no reference to it resolves.
func FromUnstructured(content map[string]any) *ServiceImport {
	found := &ServiceImport{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, found); err != nil {
		found.Spec = ServiceImportSpec{}
	}
	return found
}

// DeepCopyObject implements runtime.Object.
func (s *ServiceImport) DeepCopyObject() runtime.Object { return new(s.copy()) }

func (s *ServiceImport) copy() ServiceImport {
	c := ServiceImport{TypeMeta: s.TypeMeta, Spec: s.Spec}
	s.DeepCopyInto(&c.ObjectMeta)
	c.Spec.IPs, c.Spec.IPFamilies, c.Spec.Ports = slices.Clone(s.Spec.IPs), slices.Clone(s.Spec.IPFamilies), slices.Clone(s.Spec.Ports)
	for i := range c.Spec.Ports {
		if p := &c.Spec.Ports[i]; p.AppProtocol != nil {
			p.AppProtocol = new(*p.AppProtocol)
		}
	}
	return c
}

// DeepCopyObject implements runtime.Object.
func (l *ServiceImportList) DeepCopyObject() runtime.Object {
	c := &ServiceImportList{TypeMeta: l.TypeMeta}
	l.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, l.Items[i].copy())
	}
	return c
}
