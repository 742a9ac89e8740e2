package controller

import (
	"errors"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// Until the CRD is installed, reading a ServiceImport fails as it does without a kind, but not
// before the controller knows that it is not installed.
func TestServiceImportsWithoutCRD(t *testing.T) {
	for isKnown, want := range map[bool]error{false: errUnknownVersion, true: state.ErrNoServiceImports} {
		r := importReader{watchedCluster(t), &serviceImports{isKnown: isKnown}}
		err := r.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, &multicluster.ServiceImport{})
		if !errors.Is(err, want) {
			t.Errorf("known: %t: got %v, want %v", isKnown, err, want)
		}
	}
}

// The version comes from the CRD, because discovery can lag behind the CRD's watch.
func TestServiceImportsAreReadInTheNewestServedVersion(t *testing.T) {
	for name, test := range map[string]struct {
		served      []string
		established apiextensionsv1.ConditionStatus
		want        string
	}{
		"none":             {nil, "True", ""},
		"an old version":   {[]string{"v1alpha1"}, "True", "v1alpha1"},
		"two versions":     {[]string{"v1alpha1", "v1beta1"}, "True", "v1beta1"},
		"an unknown v2":    {[]string{"v2", "v1beta1"}, "True", "v1beta1"},
		"only v2":          {[]string{"v2"}, "True", ""},
		"not accepted yet": {[]string{"v1beta1"}, "False", ""},
	} {
		t.Run(name, func(t *testing.T) {
			crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: multicluster.CRD}}
			crd.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: test.established}}
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
			_, err := s.reconcile(t.Context(), reconcile.Request{})
			if got, isKnown := s.watched(); err != nil || got != test.want || !isKnown {
				t.Errorf("the version is %q, known: %t, %v; want %q", got, isKnown, err, test.want)
			}
		})
	}
}
