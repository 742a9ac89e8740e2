package cluster

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// ServiceImportCRD returns a CRD for ServiceImports whose schema permits every field. The
// API server serves the versions and stores the first one.
func ServiceImportCRD(versions ...string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{
		Name: multicluster.CRD, Annotations: map[string]string{"api-approved.kubernetes.io": "unapproved, for tests"},
	}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: multicluster.GroupName, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: multicluster.KindServiceImport, ListKind: "ServiceImportList", Plural: "serviceimports", Singular: "serviceimport"},
	}
	for i, version := range versions {
		permissive := true
		crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: version, Served: true, Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: &permissive,
			}},
		})
	}
	return crd
}
