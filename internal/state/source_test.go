package state_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

const gatewayManifest = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g}
spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
`

func classManifest(name, controller string) string {
	return `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: ` + name + `}
spec: {controllerName: ` + controller + `}
---
`
}

// fromStdin reads manifests from standard input.
func fromStdin(t *testing.T, manifests string) *state.Source {
	t.Helper()
	options := manifest.Options{Namespace: "chosen", Stdin: strings.NewReader(manifests)}
	files, err := state.FromFiles([]string{"-"}, options, controllerName, "cloudflare-tunnel")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFromFilesAddsOnlyAMissingClass(t *testing.T) {
	for name, test := range map[string]struct {
		manifests             string
		managed, classMissing bool
	}{
		"no class":                                 {gatewayManifest, true, false},
		"a managed class":                          {gatewayManifest + classManifest("cloudflare-tunnel", controllerName), true, false},
		"a class of another controller":            {gatewayManifest + classManifest("cloudflare-tunnel", "example.com/other"), false, false},
		"only a class with another name":           {gatewayManifest + classManifest("tunnel", controllerName), false, true},
		"no class, and a Gateway of another class": {strings.Replace(gatewayManifest, "cloudflare-tunnel", "internal", 1), false, true},
		"a managed class with another name":        {strings.Replace(gatewayManifest, "cloudflare-tunnel", "tunnel", 1) + classManifest("tunnel", controllerName), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := newLoader(fromStdin(t, test.manifests)).Load(t.Context(), state.GatewayKey("chosen", "g"))
			if err != nil {
				t.Fatal(err)
			}
			if loaded.Managed != test.managed || loaded.ClassMissing != test.classMissing {
				t.Errorf("managed %t, class missing %t, want %t, %t", loaded.Managed, loaded.ClassMissing, test.managed, test.classMissing)
			}
		})
	}
}

func TestFromFilesReadsTunnels(t *testing.T) {
	// Without a cluster, a Tunnel exists only if a manifest contains it.
	for manifests, want := range map[string]string{clusterManifests: "t", strings.Replace(clusterManifests, sharedTunnelManifest, "", 1): ""} {
		loaded, err := newLoader(fromStdin(t, manifests)).Load(t.Context(), state.GatewayKey("infra", "shared"))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(loaded.Snapshot.Tunnel); got != want {
			t.Errorf("the tunnel is %q, want %q", got, want)
		}
	}
}

func TestFromFilesAddsMissingNamespaces(t *testing.T) {
	files := fromStdin(t, gatewayManifest+`
{apiVersion: v1, kind: Namespace, metadata: {name: known, labels: {team: a}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: known}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: unknown}, spec: {ports: [{port: 80}]}}
`)
	for name, want := range map[string]map[string]string{
		"known":   {"team": "a", corev1.LabelMetadataName: "known"},
		"unknown": {corev1.LabelMetadataName: "unknown"},
		"chosen":  {corev1.LabelMetadataName: "chosen"},
	} {
		var namespace corev1.Namespace
		if err := files.Get(t.Context(), client.ObjectKey{Name: name}, &namespace); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, namespace.Labels); diff != "" {
			t.Errorf("labels of namespace %s differ (-want +got):\n%s", name, diff)
		}
	}
	var all corev1.NamespaceList
	if err := files.List(t.Context(), &all); err != nil || len(all.Items) != 3 {
		t.Errorf("got %d namespaces, %v, want 3", len(all.Items), err)
	}
	if got := len(files.Objects); got != 4 {
		t.Errorf("got %d objects, want the 4 objects of the manifests", got)
	}
}

func TestFromFilesCountsSkippedObjects(t *testing.T) {
	files := fromStdin(t, `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: b}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: c}}
`)
	want := []manifest.Skipped{
		{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Count: 2},
		{GroupKind: schema.GroupKind{Group: "batch", Kind: "Job"}, Count: 1},
	}
	if diff := cmp.Diff(want, files.Skipped); diff != "" {
		t.Errorf("skipped manifests differ (-want +got):\n%s", diff)
	}
}

func TestFromFilesReadsFilesAndDirectories(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	single := write("single.yaml", gatewayManifest)
	write("many/class.yaml", classManifest("tunnel", controllerName))
	write("many/namespace.json", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team"}}`)
	files, err := state.FromFiles([]string{single, filepath.Join(dir, "many")}, manifest.Options{}, controllerName, "cloudflare-tunnel")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range files.Objects {
		got = append(got, typeName(object)+" "+object.GetName())
	}
	if diff := cmp.Diff([]string{"*v1.Gateway g", "*v1.GatewayClass tunnel", "*v1.Namespace team"}, got); diff != "" {
		t.Errorf("objects differ (-want +got):\n%s", diff)
	}
}

func TestFromFilesReturnsReadErrors(t *testing.T) {
	files, err := state.FromFiles([]string{"no-such-file.yaml"}, manifest.Options{}, controllerName, "cloudflare-tunnel")
	if err == nil || files != nil || !strings.Contains(err.Error(), "no-such-file.yaml") {
		t.Errorf("FromFiles = %v, %v, want an error that names the file", files, err)
	}
}

func TestMemoryServesGetAndList(t *testing.T) {
	m := memory(t, objects(t, clusterManifests))
	t.Run("Get returns NotFound for a missing object", func(t *testing.T) {
		for _, object := range []client.Object{&gatewayv1.HTTPRoute{}, &gatewayv1.GRPCRoute{}} {
			if err := m.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "none"}, object); !apierrors.IsNotFound(err) {
				t.Errorf("Get of %T: got %v, want NotFound", object, err)
			}
		}
	})
	t.Run("List without a selector returns all objects", func(t *testing.T) {
		var list gatewayv1.GatewayList
		if err := m.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 4 {
			t.Errorf("got %d Gateways, want 4", len(list.Items))
		}
	})
	t.Run("List of a kind without objects is empty", func(t *testing.T) {
		list := gatewayv1.GRPCRouteList{Items: make([]gatewayv1.GRPCRoute, 1)}
		if err := m.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Items) != 0 {
			t.Errorf("got %d GRPCRoutes, want none", len(list.Items))
		}
	})
	t.Run("List by a missing index is an error", func(t *testing.T) {
		var list gatewayv1.GatewayList
		if err := m.List(t.Context(), &list, client.MatchingFields{"none": "x"}); err == nil {
			t.Error("List returned no error")
		}
	})
}
