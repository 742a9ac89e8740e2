package state_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

const clusterRoute = `
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

// copiedRoute is the same route in a file that was exported from another cluster.
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

func getFrom[T client.Object](t *testing.T, source *state.Source, namespace, name string, object T) T {
	t.Helper()
	if err := source.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestOverlayKeepsFieldsOfTheAPIServer(t *testing.T) {
	// A changed object keeps the creation timestamp and the status from the cluster,
	// because precedence depends on the age. Its generation increases only if the spec
	// changes.
	for name, test := range map[string]struct {
		change     string
		generation int64
		hostnames  int
	}{
		"the same spec": {copiedRoute, 3, 0},
		"another spec":  {strings.Replace(copiedRoute, "spec: {", "spec: {hostnames: [a.example.com], ", 1), 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			source := fromCluster(t, newAPIServer(t, clusterRoute), test.change)
			route := getFrom(t, source, "team", "web", &gatewayv1.HTTPRoute{})
			if route.UID != "u" || route.Generation != test.generation || route.CreationTimestamp.UTC().Format(time.RFC3339) != "2026-01-02T03:04:05Z" ||
				route.DeletionTimestamp == nil {
				t.Errorf("metadata is %+v, want that of the cluster", route.ObjectMeta)
			}
			if len(route.Status.Parents) != 1 || route.Status.Parents[0].ParentRef.Name != "shared" {
				t.Errorf("status is %+v, want that of the cluster", route.Status)
			}
			if diff := cmp.Diff(map[string]string{"only": "file"}, route.Labels); diff != "" {
				t.Errorf("labels differ (-want +got):\n%s", diff)
			}
			if len(route.Spec.Hostnames) != test.hostnames {
				t.Errorf("spec is %+v, want that of the file", route.Spec)
			}
			if got := len(source.Objects); got != 1 {
				t.Errorf("got %d objects, want 1", got)
			}
		})
	}
}

func TestOverlayMakesNewObjectsTheYoungest(t *testing.T) {
	change := strings.Replace(copiedRoute, "name: web", "name: new", 1)
	source := fromCluster(t, newAPIServer(t, clusterRoute), change)
	got := getFrom(t, source, "team", "new", &gatewayv1.HTTPRoute{}).ObjectMeta
	want := metav1.ObjectMeta{Name: "new", Namespace: "team", Generation: 1, Labels: map[string]string{"only": "file"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metadata differs (-want +got):\n%s", diff)
	}
	if status := getFrom(t, source, "team", "new", &gatewayv1.HTTPRoute{}).Status; len(status.Parents) != 0 {
		t.Errorf("status is %+v, want none", status)
	}
	if len(source.Objects) != 2 {
		t.Errorf("got %d objects, want 2", len(source.Objects))
	}
	// An object with the same name but another kind is a different object.
	other := `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}`
	if source := fromCluster(t, newAPIServer(t, clusterRoute), other); len(source.Objects) != 2 {
		t.Errorf("got %d objects, want 2", len(source.Objects))
	}
}

// The API server keeps a Service's addresses when a manifest without addresses is
// applied.
func TestOverlayKeepsTheAddressesOfServices(t *testing.T) {
	const service = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}], clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4]}}`
	const manifest = `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 8080}]}}`
	for name, test := range map[string]struct{ manifest, want string }{
		"no address":   {manifest, "10.0.0.1"},
		"headless":     {strings.Replace(manifest, "ports:", "clusterIP: None, ports:", 1), corev1.ClusterIPNone},
		"ExternalName": {strings.Replace(manifest, "ports:", "type: ExternalName, externalName: a.example.com, ports:", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := fromCluster(t, newAPIServer(t, service), test.manifest)
			if got := getFrom(t, source, "team", "web", &corev1.Service{}).Spec; got.ClusterIP != test.want || got.Ports[0].Port != 8080 {
				t.Errorf("spec is %+v, want the clusterIP %q and the port of the manifest", got, test.want)
			}
		})
	}
}

// The cluster without the manifests has the objects as they are.
func TestWithoutManifests(t *testing.T) {
	change := strings.Replace(copiedRoute, "spec: {", "spec: {hostnames: [a.example.com], ", 1) + strings.Replace(copiedRoute, "name: web", "name: new", 1)
	unchanged, err := fromCluster(t, newAPIServer(t, clusterRoute), change).WithoutManifests()
	if err != nil {
		t.Fatal(err)
	}
	if route := getFrom(t, unchanged, "team", "web", &gatewayv1.HTTPRoute{}); len(route.Spec.Hostnames) != 0 || len(unchanged.Objects) != 1 {
		t.Errorf("%d objects with the spec %+v, want that of the cluster", len(unchanged.Objects), route.Spec)
	}
	if got, err := fromCluster(t, newAPIServer(t, clusterRoute), "").WithoutManifests(); got != nil || err != nil {
		t.Errorf("a cluster without manifests: %v, %v, want none", got, err)
	}
}

func TestOverlayIgnoresTunnels(t *testing.T) {
	// A Tunnel in a manifest neither replaces nor adds a Tunnel, because only the
	// controller writes Tunnels.
	stolen := strings.Replace(sharedTunnelManifest, "tunnelID: t", "tunnelID: stolen", 1)
	for name, live := range map[string]string{
		"the cluster has a Tunnel":  clusterManifests,
		"the cluster has no Tunnel": strings.Replace(clusterManifests, sharedTunnelManifest, "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			source := fromCluster(t, newAPIServer(t, live), stolen)
			loaded, err := newLoader(source).Load(t.Context(), state.GatewayKey("infra", "shared"))
			if err != nil {
				t.Fatal(err)
			}
			want := map[bool]string{true: "t", false: ""}[live == clusterManifests]
			if got := string(loaded.Snapshot.Tunnel); got != want {
				t.Errorf("the tunnel is %q, want %q", got, want)
			}
			skipped := []manifest.Skipped{{GroupKind: schema.GroupKind{Group: "tunnelgateway.dev", Kind: "Tunnel"}, Count: 1}}
			if diff := cmp.Diff(skipped, source.Skipped); diff != "" {
				t.Errorf("skipped manifests differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOverlayAddsMissingNamespacesOnly(t *testing.T) {
	// FromCluster adds a manifest's missing namespace, but no missing GatewayClass.
	source := fromCluster(t, newAPIServer(t, clusterManifests), strings.Replace(gatewayManifest, "{name: g}", "{name: g, namespace: fresh}", 1))
	getFrom(t, source, "", "fresh", &corev1.Namespace{})
	loaded, err := newLoader(source).Load(t.Context(), state.GatewayKey("fresh", "g"))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Gateway == nil || !loaded.ClassMissing {
		t.Errorf("loaded %+v, want the Gateway without a class", contentOf(loaded))
	}
}
