package controller

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// The newest version with the kind is read, although the group can have newer versions of
// other kinds.
func TestNewestVersionOfServiceImports(t *testing.T) {
	const imports, exports = `{"kind":"ServiceImport","name":"serviceimports","namespaced":true}`, `{"kind":"ServiceExport","name":"serviceexports","namespaced":true}`
	for name, test := range map[string]struct {
		served map[string]string // resources by version
		want   string
		fails  bool
	}{
		"no group":          {nil, "", false},
		"another kind":      {map[string]string{"v1": exports}, "", false},
		"an old version":    {map[string]string{"v1alpha1": imports}, "v1alpha1", false},
		"two versions":      {map[string]string{"v1alpha1": imports, "v1beta1": exports + "," + imports}, "v1beta1", false},
		"another kind's v1": {map[string]string{"v1alpha1": imports, "v1": exports}, "v1alpha1", false},
		"a failure":         {map[string]string{"v1": ""}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for version, resources := range test.served {
					if r.URL.Path != "/apis/"+multicluster.GroupName+"/"+version {
						continue
					}
					if resources == "" {
						w.WriteHeader(http.StatusInternalServerError)
						return
					}
					w.Header().Set("Content-Type", "application/json")
					_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + multicluster.GroupName + "/" + version + `","resources":[` + resources + `]}`))
					return
				}
				http.NotFound(w, r)
			}))
			defer server.Close()
			api := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: server.URL})
			got, err := newestVersion(api)(t.Context())
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %q, %v; want %q, an error: %t", got, err, test.want, test.fails)
			}
		})
	}
}

// Until the CRD is installed, reading a ServiceImport fails as it does without a kind.
func TestServiceImportsWithoutCRD(t *testing.T) {
	r := importReader{watchedCluster(t), &serviceImports{}}
	err := r.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "web"}, &multicluster.ServiceImport{})
	if !meta.IsNoMatchError(err) {
		t.Errorf("got %v, want NoMatch", err)
	}
}

// A watch can report an upgraded CRD before discovery does.
func TestUpgradedServiceImportsAreReadDespiteOldDiscovery(t *testing.T) {
	t.Skip("expected to fail: discovery is asked once, and its answer can be older than the CRD")
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: multicluster.CRD}}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1alpha1"}, {Name: "v1beta1", Served: true}}
	s := &serviceImports{
		cache: &informertest.FakeInformers{Scheme: Scheme()}, version: "v1alpha1",
		watches:   watches{reader: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(crd).Build()},
		discovery: func(context.Context) (string, error) { return "v1alpha1", nil },
	}
	if _, err := s.reconcile(t.Context(), reconcile.Request{}); err != nil || s.watched() != "v1beta1" {
		t.Errorf("the version is %q, %v; want v1beta1", s.watched(), err)
	}
}
