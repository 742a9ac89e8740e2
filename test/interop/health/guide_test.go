package health

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// kustomizeController has the CRD of Flux' Kustomization.
var kustomizeController = downloaded{
	"github.com/fluxcd/kustomize-controller", "v1.10.1", "h1:IjTnrkIy0ULJoTNC2ZKuMb32vkqj7dJ6zt6UqbTFxKA=",
}

func sampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(samples, "deployment-tools", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// TestGuidesManifestsApply with kubectl, to an API server that has the CRDs of
// Argo CD and Flux; and kubectl's columns are of use.
func TestGuidesManifestsApply(t *testing.T) {
	w := newWorld(t)
	w.installCRDs(argoCDModule.files(t, "manifests/crds/application-crd", ".yaml"))
	w.installCRDs(kustomizeController.files(t, "config/crd/bases/", ".yaml"))
	for _, name := range []string{"argocd", "flux-system"} {
		w.createObject(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, file := range sampleFiles(t) {
		t.Log(w.expectKubectl("apply", "--server-side", "--validate=strict", "-f", file))
	}
	w.createObject(apiToken())
	w.start()
	w.expectHealthy("the guide's manifests")
	w.expectKubectl("wait", "--for=condition=Accepted", "gatewayclass/platform")
	w.expectKubectl("wait", "-n=platform", programmed, "gateway/shared")
	w.expectKubectl("wait", "-n=team-c", programmed, "listenerset", "--all")
	w.expectKubectl("wait", "-n=platform", "--for=condition=tunnelgateway.dev/ConnectorsReady=False", "gateway/shared")
	w.expectKubectl("wait", "-n=team-c", "--for=jsonpath={.status.parents[0].conditions[?(@.type==\"Accepted\")].status}=True", "httproute/web")

	narrow := columns(w.expectKubectl("get", "tunnelconfigurations", "-n="+cluster.ControllerNamespace))
	w.g.Expect(narrow).To(Equal(map[string]string{
		"NAME": "platform", "ACCOUNT": "0123456789abcdef0123456789abcdef", "REPLICAS": "3", "MODE": "PreferGateway", "AGE": narrow["AGE"],
	}))
	wide := columns(w.expectKubectl("get", "tunnelconfigurations", "-n="+cluster.ControllerNamespace, "-o=wide"))
	w.g.Expect(wide).To(HaveKeyWithValue("EXISTING", ""))
	w.g.Expect(wide).To(HaveKeyWithValue("ON-DELETION", "Retain"))
	w.g.Expect(wide).To(HaveKeyWithValue("AUTOSCALED-TO", ""))
	w.g.Expect(wide).To(HaveKeyWithValue("PROTOCOL", "http2"))
	w.g.Expect(wide).To(HaveKeyWithValue("TOKEN-SECRET", "cloudflare-api-token"))
}

// TestRouteWithoutParentsIsReady by the guide's expressions, rather than an
// error, which would fail its Kustomization.
func TestRouteWithoutParentsIsReady(t *testing.T) {
	for _, kind := range []string{"HTTPRoute", "GRPCRoute"} {
		route := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1",
			"kind":       kind,
			"metadata":   map[string]any{"name": "lonely", "namespace": "team-a", "generation": int64(1)},
			"spec":       map[string]any{},
		}}
		if got := guideExpressions(t).judge(route); got.health != healthHealthy {
			t.Errorf("%s: %+v", kind, got)
		}
		route.Object["spec"] = map[string]any{"parentRefs": []any{map[string]any{"name": "shared"}}}
		if got := guideExpressions(t).judge(route); got.health != healthProgressing {
			t.Errorf("%s with a parent: %+v", kind, got)
		}
	}
}

// columns returns the values of a table with one row by the names of their
// columns, which begin where their values do.
func columns(table string) map[string]string {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	head, row := lines[0], lines[len(lines)-1]
	byName := map[string]string{}
	for _, at := range regexp.MustCompile(`\S+\s*`).FindAllStringIndex(head, -1) {
		end := min(at[1], len(row))
		if at[1] == len(head) {
			end = len(row)
		}
		byName[strings.TrimSpace(head[at[0]:at[1]])] = strings.TrimSpace(row[min(at[0], end):end])
	}
	return byName
}

func (w *world) installCRDs(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		w.g.Expect(yaml.Unmarshal([]byte(text), crd)).To(Succeed(), name)
		path := filepath.Join(w.t.TempDir(), "crd.yaml")
		w.g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		w.expectKubectl("apply", "--server-side", "-f", path)
		w.g.Eventually(func() error { // kubectl fails while there are no conditions at all
			_, err := w.kubectl("wait", "--for=condition=Established", "crd/"+crd.Name)
			return err
		}).Should(Succeed())
	}
}
