package state_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// importManifests is a route to a ServiceImport that has the EndpointSlices of two clusters.
// A Service has the same name.
const importManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: team}
spec: {gatewayClassName: tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team}
spec:
  parentRefs: [{name: shared}]
  rules:
  - backendRefs: [{group: multicluster.x-k8s.io, kind: ServiceImport, name: web, port: 80}]
  - filters: [{type: RequestMirror, requestMirror: {backendRef: {group: multicluster.x-k8s.io, kind: ServiceImport, name: copy, port: 80}}}]
    backendRefs: [{name: web, port: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team}
spec: {ports: [{port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: web, namespace: team}
spec: {type: ClusterSetIP, ips: [10.42.0.1], ports: [{port: 80, protocol: TCP}], sessionAffinity: None}
status: {clusters: [{cluster: east}, {cluster: west}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: local, namespace: team, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: []
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: east, namespace: team, labels: {multicluster.kubernetes.io/service-name: web, multicluster.kubernetes.io/source-cluster: east}}
addressType: IPv4
endpoints: []
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: west, namespace: team, labels: {multicluster.kubernetes.io/service-name: web, multicluster.kubernetes.io/source-cluster: west}}
addressType: IPv4
endpoints: []
`

// loadImports loads the Gateway in the manifests, and describes its backends.
func loadImports(t *testing.T, reader client.Reader) []string {
	t.Helper()
	loaded, err := state.Loader{Reader: reader, ControllerName: controllerName}.Load(t.Context(), state.GatewayKey("team", "shared"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if loaded.Snapshot.NoServiceImports {
		got = append(got, "no CRD")
	}
	for name, found := range loaded.Snapshot.ServiceImports {
		text := name.Name + " does not exist"
		if found != nil {
			text = name.Name + " has " + found.Spec.IPs[0]
		}
		got = append(got, text)
	}
	web := types.NamespacedName{Namespace: "team", Name: "web"}
	for _, slice := range loaded.Snapshot.ImportedSlices[web] {
		got = append(got, "imported slice "+slice.Name)
	}
	for _, slice := range loaded.Snapshot.EndpointSlices.Value(web) {
		got = append(got, "slice "+slice.Name)
	}
	slices.Sort(got)
	return got
}

// A ServiceImport and its EndpointSlices are read from manifests and from clusters that
// serve any version of the API.
func TestLoadReadsServiceImports(t *testing.T) {
	complete := []string{"copy does not exist", "imported slice east", "imported slice west", "slice local", "web has 10.42.0.1"}
	for name, test := range map[string]struct {
		reader func(*apiServer) client.Reader
		want   []string
	}{
		"manifests":          {func(s *apiServer) client.Reader { return s.Memory }, complete},
		"the newest version": {func(s *apiServer) client.Reader { s.importVersions = []string{"v1"}; return fromCluster(t, s, "") }, complete},
		"an old version": {func(s *apiServer) client.Reader {
			s.importVersions = []string{"v1alpha1"}
			return fromCluster(t, s, "")
		}, complete},
		"no CRD": {func(s *apiServer) client.Reader { return fromCluster(t, s, "") }, []string{"no CRD", "slice local"}},
	} {
		if diff := cmp.Diff(test.want, loadImports(t, test.reader(newAPIServer(t, importManifests)))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Only NotFound means that the cluster does not serve a version.
func TestFromClusterReportsUnreadableServiceImports(t *testing.T) {
	server := newAPIServer(t, importManifests)
	for name, failure := range map[string]error{
		"forbidden":     forbiddenError("serviceimports.multicluster.x-k8s.io", "", ""),
		"not available": apierrors.NewServiceUnavailable("busy"),
		"not found":     nil,
	} {
		server.fail = func(_ client.ObjectKey, object any) error {
			if _, ok := object.(*unstructured.UnstructuredList); !ok {
				return nil
			}
			if failure == nil {
				return apierrors.NewNotFound(schema.GroupResource{}, "")
			}
			return failure
		}
		_, err := state.FromCluster(t.Context(), newCluster(server), &manifest.Set{})
		if !errors.Is(err, failure) {
			t.Errorf("%s: got %v, want %v", name, err, failure)
		}
	}
}
