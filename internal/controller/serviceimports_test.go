package controller

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// Until the CRD is installed, reading a ServiceImport fails as it does without a kind.
func TestServiceImportsWithoutCRD(t *testing.T) {
	r := importReader{watchedCluster(t), &serviceImports{}}
	err := r.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, &multicluster.ServiceImport{})
	if !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want NoMatch", err)
	}
}

// A watch can report an upgraded CRD before discovery does, which once was asked for the
// version.
func TestServiceImportsAreReadInTheNewestServedVersion(t *testing.T) {
	for name, test := range map[string]struct {
		served []string
		want   string
	}{
		"none":               {nil, ""},
		"an old version":     {[]string{"v1alpha1"}, "v1alpha1"},
		"two versions":       {[]string{"v1alpha1", "v1beta1"}, "v1beta1"},
		"an unknown v2":      {[]string{"v2", "v1beta1"}, "v1beta1"},
		"only an unknown v2": {[]string{"v2"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: multicluster.CRD}}
			for _, version := range []string{"v1alpha1", "v1beta1", "v1", "v2"} {
				crd.Spec.Versions = append(crd.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
					Name: version, Served: slices.Contains(test.served, version),
				})
			}
			s := &serviceImports{
				cache: &informertest.FakeInformers{Scheme: Scheme()}, version: "v1alpha1",
				live: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(crd).
					WithIndex(crd, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build(),
				watches: watches{reader: watchedCluster(t)},
			}
			if _, err := s.reconcile(t.Context(), reconcile.Request{}); err != nil || s.watched() != test.want {
				t.Errorf("the version is %q, %v; want %q", s.watched(), err, test.want)
			}
		})
	}
}
