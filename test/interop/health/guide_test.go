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

// kustomizeController contains the CRD for Flux's Kustomization.
var kustomizeController = goModule{
	"github.com/fluxcd/kustomize-controller", "v1.10.1", "h1:IjTnrkIy0ULJoTNC2ZKuMb32vkqj7dJ6zt6UqbTFxKA=",
}

// sampleFiles returns the paths to the guide's manifests.
func sampleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(samples, "deployment-tools", "*", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// TestManifestsOfTheGuideApply applies the manifests to an API server with the CRDs for
// Argo CD and Flux. It then runs the guide's commands and checks the columns that kubectl
// prints.
func TestManifestsOfTheGuideApply(t *testing.T) {
	e := newEnvironment(t)
	e.installCRDs(argoCDModule.files(t, "manifests/crds/application-crd", ".yaml"))
	e.installCRDs(kustomizeController.files(t, "config/crd/bases/", ".yaml"))
	for _, name := range []string{"argocd", "flux-system"} {
		e.createObject(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, file := range sampleFiles(t) {
		t.Log(e.expectKubectl("apply", "--server-side", "--validate=strict", "-f", file))
	}
	e.createObject(apiToken())
	e.startController()
	e.expectHealthy("the guide's manifests")
	e.expectKubectl("wait", "--for=condition=Accepted", "gatewayclass/platform")
	e.expectKubectl("wait", "-n=platform", programmed, "gateway/shared")
	e.expectKubectl("wait", "-n=team-c", programmed, "listenerset", "--all")
	e.expectKubectl("wait", "-n=platform", "--for=condition=tunnelgateway.dev/ConnectorsReady=False", "gateway/shared")
	e.expectKubectl("wait", "-n=team-c", "--for=jsonpath={.status.parents[0].conditions[?(@.type==\"Accepted\")].status}=True", "httproute/web")

	narrow := tableColumns(e.expectKubectl("get", "tunnelconfigurations", "-n="+cluster.ControllerNamespace))
	e.g.Expect(narrow).To(Equal(map[string]string{
		"NAME": "platform", "ACCOUNT": "0123456789abcdef0123456789abcdef", "REPLICAS": "3", "MODE": "PreferGateway", "AGE": narrow["AGE"],
	}))
	wide := tableColumns(e.expectKubectl("get", "tunnelconfigurations", "-n="+cluster.ControllerNamespace, "-o=wide"))
	e.g.Expect(wide).To(HaveKeyWithValue("EXISTING", ""))
	e.g.Expect(wide).To(HaveKeyWithValue("ON-DELETION", "Retain"))
	e.g.Expect(wide).To(HaveKeyWithValue("AUTOSCALED-TO", ""))
	e.g.Expect(wide).To(HaveKeyWithValue("PROTOCOL", "http2"))
	e.g.Expect(wide).To(HaveKeyWithValue("TOKEN-SECRET", "cloudflare-api-token"))
}

// TestRouteWithoutParentsIsHealthyInFlux evaluates the guide's expressions for a
// route without parents. An error would make the Kustomization fail.
func TestRouteWithoutParentsIsHealthyInFlux(t *testing.T) {
	for _, kind := range []string{"HTTPRoute", "GRPCRoute"} {
		route := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1",
			"kind":       kind,
			"metadata":   map[string]any{"name": "no-parents", "namespace": "team-a", "generation": int64(1)},
			"spec":       map[string]any{},
		}}
		if got := guideExpressions(t).assess(route); got.health != healthHealthy {
			t.Errorf("%s without parents: got %+v, want %s", kind, got, healthHealthy)
		}
		route.Object["spec"] = map[string]any{"parentRefs": []any{map[string]any{"name": "shared"}}}
		if got := guideExpressions(t).assess(route); got.health != healthProgressing {
			t.Errorf("%s with a parent: got %+v, want %s", kind, got, healthProgressing)
		}
	}
}

// tableColumns maps the column names to the values in the last row. A column's name and
// values are left-aligned.
func tableColumns(table string) map[string]string {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	head, row := lines[0], lines[len(lines)-1]
	byName := map[string]string{}
	for _, column := range regexp.MustCompile(`\S+\s*`).FindAllStringIndex(head, -1) {
		end := min(column[1], len(row))
		if column[1] == len(head) {
			end = len(row)
		}
		byName[strings.TrimSpace(head[column[0]:column[1]])] = strings.TrimSpace(row[min(column[0], end):end])
	}
	return byName
}

// installCRDs applies CRDs and waits until the API server serves them.
func (e *environment) installCRDs(files map[string]string) {
	e.t.Helper()
	for name, text := range files {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		e.g.Expect(yaml.Unmarshal([]byte(text), crd)).To(Succeed(), name)
		path := filepath.Join(e.t.TempDir(), "crd.yaml")
		e.g.Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		e.expectKubectl("apply", "--server-side", "-f", path)
		e.g.Eventually(func() error { // kubectl fails while the CRD has no conditions
			_, err := e.kubectl("wait", "--for=condition=Established", "crd/"+crd.Name)
			return err
		}).Should(Succeed())
	}
}
