package state_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

const unsupportedManifests = `
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TCPRoute
metadata: {name: db, namespace: team}
spec: {parentRefs: [{name: shared, namespace: infra}, {group: "", kind: Service, name: mesh}, text], rules: []}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XListenerSet
metadata: {name: old, namespace: team}
spec: {parentRef: {name: shared}}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: sticky, namespace: team}
spec: {targetRefs: [{group: "", kind: Service, name: web}]}
---
{apiVersion: gateway.networking.x-k8s.io/v1alpha1, kind: XMesh, metadata: {name: mesh, namespace: team}, spec: {controllerName: a.example/b}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: team}, spec: {targetRefs: [{name: web}]}}
`

// unsupportedObjects returns the objects in unsupportedManifests that the controller does not read.
func unsupportedObjects(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	set, err := manifest.Parse("in.yaml", []byte(unsupportedManifests), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Unsupported
}

// describe returns each object with its references.
func describe(all []state.Unsupported) []string {
	var lines []string
	for _, u := range all {
		line := u.Kind + " " + u.Namespace + "/" + u.Name
		for _, ref := range append(u.Parents, u.Targets...) {
			line += " -> " + strings.Join([]string{string(*ref.Group), string(*ref.Kind), string(ref.Name)}, ":")
			if ref.Namespace != nil {
				line += "@" + string(*ref.Namespace)
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestObjectsOfUnsupportedKindsHaveTheirReferences(t *testing.T) {
	source, err := state.FromFiles([]string{"-"}, manifest.Options{Stdin: strings.NewReader(unsupportedManifests)}, "a.example/b", "class")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"TCPRoute team/db -> gateway.networking.k8s.io:Gateway:shared@infra -> :Service:mesh",
		"XListenerSet team/old -> gateway.networking.k8s.io:Gateway:shared",
		"XBackendTrafficPolicy team/sticky -> :Service:web",
		"XMesh team/mesh",
	}
	if diff := cmp.Diff(want, describe(source.Unsupported)); diff != "" {
		t.Errorf("objects differ (-want +got):\n%s", diff)
	}
}

func TestObjectsOfUnsupportedKindsAreReadFromTheCluster(t *testing.T) {
	server := newAPIServer(t, clusterManifests)
	server.unsupported = unsupportedObjects(t)
	change := server.unsupported[0].DeepCopy()
	if err := unstructured.SetNestedSlice(change.Object, nil, "spec", "parentRefs"); err != nil {
		t.Fatal(err)
	}
	change.SetAPIVersion("gateway.networking.k8s.io/v1")
	source, err := state.FromCluster(t.Context(), newCluster(server), &manifest.Set{Unsupported: []*unstructured.Unstructured{change}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"TCPRoute team/db", // the manifest replaces the object
		"XBackendTrafficPolicy team/sticky -> :Service:web",
		"XListenerSet team/old -> gateway.networking.k8s.io:Gateway:shared",
	}
	if diff := cmp.Diff(want, describe(source.Unsupported)); diff != "" {
		t.Errorf("objects differ (-want +got):\n%s", diff)
	}
}

func TestOnlyMissingPermissionsForUnsupportedKindsAreTolerated(t *testing.T) {
	unreachable := errors.New("unreachable")
	for _, test := range []struct{ refuse, want error }{{forbiddenError("tcproutes.gateway.networking.k8s.io", "", ""), nil}, {unreachable, unreachable}} {
		server := newAPIServer(t, clusterManifests)
		server.fail = func(_ client.ObjectKey, object any) error {
			if page, ok := object.(*unstructured.UnstructuredList); ok && page.GetKind() == "TCPRouteList" {
				return test.refuse
			}
			return nil
		}
		if _, err := state.FromCluster(t.Context(), newCluster(server), &manifest.Set{}); !errors.Is(err, test.want) {
			t.Errorf("with the error %v, FromCluster returns %v, want %v", test.refuse, err, test.want)
		}
	}
}
