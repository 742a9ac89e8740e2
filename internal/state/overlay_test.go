package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// A route as the API server has it.
const liveRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata:
  name: web
  namespace: team
  uid: u
  generation: 3
  creationTimestamp: "2026-01-02T03:04:05Z"
  deletionTimestamp: "2026-01-03T03:04:05Z"
  labels: {only: live}
spec: {parentRefs: [{name: shared}]}
status:
  parents:
  - parentRef: {name: shared}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 3}]
---
`

// The same route in a file that was copied from another cluster.
const copiedRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team, uid: copied, generation: 9, creationTimestamp: "2020-01-01T00:00:00Z", labels: {only: file}}
spec: {parentRefs: [{name: shared}]}
status:
  parents:
  - parentRef: {name: copied}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z", observedGeneration: 9}]
---
`

func getFrom[T client.Object](t *testing.T, source *state.Source, namespace, name string, into T) T {
	t.Helper()
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// Precedence goes by age and statuses by generation, so both stay the
// cluster's.
func TestOverlayKeepsWhatAWriteKeeps(t *testing.T) {
	for name, test := range map[string]struct {
		change     string
		generation int64
		hostnames  int
	}{
		"the same spec": {copiedRoute, 3, 0},
		"another spec":  {strings.Replace(copiedRoute, "spec: {", "spec: {hostnames: [a.example.com], ", 1), 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			source := laidOver(t, serving(t, liveRoute), test.change)
			route := getFrom(t, source, "team", "web", &gatewayv1.HTTPRoute{})
			if route.UID != "u" || route.Generation != test.generation || route.CreationTimestamp.UTC().Format(time.RFC3339) != "2026-01-02T03:04:05Z" ||
				route.DeletionTimestamp == nil {
				t.Errorf("metadata is %+v, want the cluster's", route.ObjectMeta)
			}
			if len(route.Status.Parents) != 1 || route.Status.Parents[0].ParentRef.Name != "shared" {
				t.Errorf("status is %+v, want the cluster's", route.Status)
			}
			if diff := cmp.Diff(map[string]string{"only": "file"}, route.Labels); diff != "" {
				t.Errorf("labels differ (-want +got):\n%s", diff)
			}
			if len(route.Spec.Hostnames) != test.hostnames {
				t.Errorf("spec is %+v, want the file's", route.Spec)
			}
			if got := len(source.Objects); got != 1 {
				t.Errorf("%d objects, want one", got)
			}
		})
	}
}

func TestOverlayMakesNewObjectsTheYoungest(t *testing.T) {
	change := strings.Replace(copiedRoute, "name: web", "name: new", 1)
	source := laidOver(t, serving(t, liveRoute), change)
	got := getFrom(t, source, "team", "new", &gatewayv1.HTTPRoute{}).ObjectMeta
	want := metav1.ObjectMeta{Name: "new", Namespace: "team", Generation: 1, Labels: map[string]string{"only": "file"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata differs (-want +got):\n%s", diff)
	}
	if status := getFrom(t, source, "team", "new", &gatewayv1.HTTPRoute{}).Status; len(status.Parents) != 0 {
		t.Errorf("status is %+v, want none", status)
	}
	if len(source.Objects) != 2 {
		t.Errorf("%d objects, want both", len(source.Objects))
	}
	// An object of the same name and another kind is another object.
	other := `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}`
	if source := laidOver(t, serving(t, liveRoute), other); len(source.Objects) != 2 {
		t.Errorf("%d objects, want both", len(source.Objects))
	}
}

func TestOverlayKeepsTheRecord(t *testing.T) {
	annotated := func(annotations string) string {
		return strings.Replace(gatewayManifest, "{name: g}", "{name: g, namespace: default, annotations: {"+annotations+"}}", 1)
	}
	const ours, theirs = `tunnelgateway.dev/tunnel: '{"tunnel":"ours"}'`, `tunnelgateway.dev/tunnel: '{"tunnel":"theirs"}'`
	for name, test := range map[string]struct {
		live, change string
		want         map[string]string
	}{
		"the cluster has one":       {annotated(ours), gatewayManifest, map[string]string{state.RecordAnnotation: `{"tunnel":"ours"}`}},
		"the manifest has another":  {annotated(ours), annotated(theirs), map[string]string{state.RecordAnnotation: `{"tunnel":"ours"}`}},
		"only the manifest has one": {gatewayManifest, annotated(theirs + ", a: b"), map[string]string{"a": "b"}},
		"nobody has one":            {annotated("a: b"), gatewayManifest, nil},
	} {
		t.Run(name, func(t *testing.T) {
			source := laidOver(t, serving(t, test.live), test.change)
			if diff := cmp.Diff(test.want, getFrom(t, source, "default", "g", &gatewayv1.Gateway{}).Annotations); diff != "" {
				t.Errorf("annotations differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A copy of a Gateway does not get the original's tunnel; one that is moved to
// another cluster keeps its own.
func TestOverlayDropsACopiedRecord(t *testing.T) {
	named := func(name, tunnel string) string {
		return strings.Replace(gatewayManifest, "{name: g}", `{name: `+name+`, namespace: default, annotations: {a: b, tunnelgateway.dev/tunnel: '{"tunnel":"`+tunnel+`"}'}}`, 1)
	}
	for tunnel, want := range map[string]map[string]string{
		"ours":  {"a": "b"},
		"moved": {"a": "b", state.RecordAnnotation: `{"tunnel":"moved"}`},
	} {
		t.Run(tunnel, func(t *testing.T) {
			source := laidOver(t, serving(t, named("g", "ours")), named("copy", tunnel))
			if diff := cmp.Diff(want, getFrom(t, source, "default", "copy", &gatewayv1.Gateway{}).Annotations); diff != "" {
				t.Errorf("annotations differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A namespace that applying would need is there, as with manifests alone; a
// class is not.
func TestOverlayAddsMissingNamespacesOnly(t *testing.T) {
	source := laidOver(t, serving(t, cluster), strings.Replace(gatewayManifest, "{name: g}", "{name: g, namespace: fresh}", 1))
	getFrom(t, source, "", "fresh", &corev1.Namespace{})
	loaded, err := state.Loader{Reader: source, ControllerName: controllerName}.Load(t.Context(), state.GatewayKey("fresh", "g"))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Gateway == nil || !loaded.Classless {
		t.Errorf("loaded %+v, want the Gateway without a class", contentOf(loaded))
	}
}
