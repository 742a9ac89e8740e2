package state_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

const controllerName = "tunnelgateway.dev/controller"

const controllerNamespace = "tunnel-gateway"

// clusterManifests contains two managed Gateways, another controller's Gateway, a
// Gateway whose GatewayClass does not exist, and the objects that belong to each
// Gateway.
const clusterManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}
---
{apiVersion: v1, kind: Namespace, metadata: {name: infra}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: unrelated}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec: {gatewayClassName: tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: team}
spec: {gatewayClassName: tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: unmanaged, namespace: infra}
spec: {gatewayClassName: other, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: classless, namespace: infra}
spec: {gatewayClassName: missing, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: near, namespace: infra}
spec: {parentRef: {name: shared}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: far, namespace: team}
spec: {parentRef: {name: shared, namespace: infra}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: near, namespace: team}
spec: {parentRef: {name: shared}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: odd, namespace: infra}
spec: {parentRef: {group: example.com, kind: Gateway, name: shared}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: twice, namespace: infra}
spec:
  parentRefs:
  - {name: shared, sectionName: a}
  - {kind: ListenerSet, name: far, namespace: team}
  rules:
  - backendRefs:
    - {name: web, port: 80}
    - {name: web, port: 81}
    - {name: gone, port: 80}
    - {name: web, namespace: team, port: 80}
    - {group: example.com, kind: Service, name: not-a-service, port: 80}
    - {kind: Bucket, name: not-a-service-either}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: not-allowed, namespace: team}
spec: {parentRefs: [{name: shared, namespace: infra}], rules: [{backendRefs: [{name: unused, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: by-set, namespace: team}
spec: {parentRefs: [{kind: ListenerSet, name: far}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: elsewhere, namespace: team}
spec: {parentRefs: [{name: shared}, {kind: ListenerSet, name: near}, {group: example.com, kind: Gateway, name: shared, namespace: infra}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: detached, namespace: team}
spec: {parentRefs: [{name: gone}]}
status:
  parents:
  - parentRef: {name: shared, namespace: infra}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - parentRef: {name: shared}
    controllerName: example.com/other
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - parentRef: {kind: ListenerSet, name: deleted}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: moved-away, namespace: infra}
spec: {parentRefs: [{name: unmanaged}, {name: classless}]}
status:
  parents:
  - parentRef: {name: unmanaged}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: never-managed, namespace: infra}
spec: {parentRefs: [{name: unmanaged}, {name: classless}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: unused, namespace: team}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: tunnel-gateway}}
---
` + sharedTunnelManifest

const sharedTunnelManifest = `
apiVersion: tunnelgateway.dev/v1alpha1
kind: Tunnel
metadata: {name: infra.shared, namespace: tunnel-gateway}
spec:
  gateway: {namespace: infra, name: shared}
  controllerName: tunnelgateway.dev/controller
  clusterUID: u
  accountID: a
  name: c.infra.shared
  deletionPolicy: Delete
status: {tunnelID: t}
`

// objects parses manifests.
func objects(t *testing.T, manifests string) []client.Object {
	t.Helper()
	set, err := manifest.Parse("in.yaml", []byte(manifests), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return set.Objects
}

func memory(t *testing.T, objects []client.Object) *state.Memory {
	t.Helper()
	m, err := state.NewMemory(objects, state.Indexes(controllerName))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// content summarizes a Loaded. Missing objects have the suffix "none".
type content struct {
	Gateway, Class          bool
	Managed, Classless      bool
	Sets, Routes            []string
	Namespaces, Services    []string
	Tunnel, SnapshotsTunnel string
}

func contentOf(l *state.Loaded) content {
	c := content{
		Gateway: l.Gateway != nil, Class: l.Snapshot.Class != nil,
		Managed: l.Managed, Classless: l.ClassMissing,
		SnapshotsTunnel: string(l.Snapshot.Tunnel),
	}
	if l.Tunnel != nil {
		c.Tunnel = client.ObjectKeyFromObject(l.Tunnel).String()
	}
	for _, set := range l.Snapshot.ListenerSets {
		c.Sets = append(c.Sets, client.ObjectKeyFromObject(set).String())
	}
	for _, route := range l.Snapshot.HTTPRoutes {
		c.Routes = append(c.Routes, client.ObjectKeyFromObject(route).String())
	}
	for name, namespace := range l.Snapshot.Namespaces {
		c.Namespaces = append(c.Namespaces, markMissing(name, namespace != nil))
	}
	for name, service := range l.Snapshot.Services.All() {
		c.Services = append(c.Services, markMissing(name.String(), service != nil))
	}
	for _, names := range [][]string{c.Sets, c.Routes, c.Namespaces, c.Services} {
		slices.Sort(names)
	}
	return c
}

func markMissing(name string, exists bool) string {
	if !exists {
		return name + " none"
	}
	return name
}

func setKey(namespace, name string) state.Key {
	key := state.GatewayKey(namespace, name)
	key.Kind = gateway.KindListenerSet
	return key
}

func TestLoadReadsTheObjectsOfAKey(t *testing.T) {
	for name, test := range map[string]struct {
		key  state.Key
		want content
	}{
		"a managed Gateway has its ListenerSets and their routes": {
			state.GatewayKey("infra", "shared"),
			content{
				Gateway: true, Class: true, Managed: true,
				Sets:       []string{"infra/near", "team/far"},
				Routes:     []string{"infra/twice", "team/by-set", "team/detached", "team/not-allowed"},
				Namespaces: []string{"infra", "team"},
				Services:   []string{"infra/gone none", "infra/web", "team/web"},
				Tunnel:     "tunnel-gateway/infra.shared", SnapshotsTunnel: "t",
			},
		},
		"a same-named Gateway elsewhere has only its own objects": {
			state.GatewayKey("team", "shared"),
			content{
				Gateway: true, Class: true, Managed: true,
				Sets:       []string{"team/near"},
				Routes:     []string{"team/elsewhere"},
				Namespaces: []string{"team"},
			},
		},
		"another controller's Gateway has only routes with a status entry": {
			state.GatewayKey("infra", "unmanaged"),
			content{Gateway: true, Class: true, Routes: []string{"infra/moved-away"}},
		},
		"a Gateway without a class has no objects": {
			state.GatewayKey("infra", "classless"),
			content{Gateway: true, Classless: true},
		},
		"a missing Gateway has no objects": {
			state.GatewayKey("team", "gone"),
			content{},
		},
		"a missing ListenerSet has the routes with a status entry": {
			setKey("team", "deleted"),
			content{Routes: []string{"team/detached"}},
		},
		"a ListenerSet with a Gateway has no objects": {
			setKey("team", "far"),
			content{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			loaded, err := newLoader(memory(t, objects(t, clusterManifests))).Load(t.Context(), test.key)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, contentOf(loaded)); diff != "" {
				t.Errorf("loaded objects differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLoadAcceptsAMissingNamespace(t *testing.T) {
	// The cache may contain an object before its namespace. This must not fail the
	// reconcile.
	withoutNamespaces := slices.DeleteFunc(objects(t, clusterManifests), func(o client.Object) bool {
		_, ok := o.(*corev1.Namespace)
		return ok
	})
	loaded, err := newLoader(memory(t, withoutNamespaces)).Load(t.Context(), state.GatewayKey("infra", "shared"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"infra none", "team none"}, contentOf(loaded).Namespaces); diff != "" {
		t.Errorf("namespaces differ (-want +got):\n%s", diff)
	}
}

func TestLoadIgnoresOtherTunnels(t *testing.T) {
	// A Tunnel with another Gateway, controller, namespace or name is never used.
	for name, change := range map[string][2]string{
		"another Gateway":    {"gateway: {namespace: infra, name: shared}", "gateway: {namespace: infra, name: other}"},
		"another controller": {"controllerName: tunnelgateway.dev/controller\n  clusterUID", "controllerName: example.com/other\n  clusterUID"},
		"another namespace":  {"name: infra.shared, namespace: tunnel-gateway", "name: infra.shared, namespace: infra"},
		"another name":       {"name: infra.shared, namespace", "name: infra.other, namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(clusterManifests, change[0], change[1], 1)
			if changed == clusterManifests {
				t.Fatalf("the manifests do not contain %q", change[0])
			}
			loaded, err := newLoader(memory(t, objects(t, changed))).Load(t.Context(), state.GatewayKey("infra", "shared"))
			if err != nil {
				t.Fatal(err)
			}
			if loaded.Tunnel != nil || loaded.Snapshot.Tunnel != "" {
				t.Errorf("loaded Tunnel %+v and tunnel %q, want none", loaded.Tunnel, loaded.Snapshot.Tunnel)
			}
		})
	}
}

func newLoader(reader client.Reader) state.Loader {
	return state.Loader{Reader: reader, CABundles: state.DirectCABundles{Reader: reader}, ControllerName: controllerName, ControllerNamespace: controllerNamespace}
}

// failingReader is a reader that fails for chosen requests.
type failingReader struct {
	client.Reader
	fails func(key client.ObjectKey, object any) bool // the key is empty for a list
}

var errRead = errors.New("the cache is broken")

func (r failingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if r.fails(key, object) {
		return errRead
	}
	return r.Reader.Get(ctx, key, object, opts...)
}

func (r failingReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.fails(client.ObjectKey{}, list) {
		return errRead
	}
	return r.Reader.List(ctx, list, opts...)
}

func typeName(value any) string { return fmt.Sprintf("%T", value) }

func TestLoadReturnsEveryReadError(t *testing.T) {
	// A read error must not look like a missing object.
	for _, kind := range []string{
		"*v1.Gateway", "*v1.GatewayClass", "*v1alpha1.Tunnel", "*v1.ListenerSetList", "*v1.HTTPRouteList", "*v1.Namespace", "*v1.Service",
	} {
		t.Run(kind, func(t *testing.T) {
			reader := failingReader{memory(t, objects(t, clusterManifests)), func(_ client.ObjectKey, object any) bool { return typeName(object) == kind }}
			_, err := newLoader(reader).Load(t.Context(), state.GatewayKey("infra", "shared"))
			if !errors.Is(err, errRead) {
				t.Errorf("got %v, want %v", err, errRead)
			}
		})
	}
}

func TestListenerSetNamesItsParentGateway(t *testing.T) {
	for name, test := range map[string]struct {
		ref    gatewayv1.ParentGatewayReference
		want   state.Key
		wantOK bool
	}{
		"the namespace defaults to that of the ListenerSet": {
			gatewayv1.ParentGatewayReference{Name: "g"}, state.GatewayKey("team", "g"), true,
		},
		"another namespace": {
			gatewayv1.ParentGatewayReference{Name: "g", Namespace: new(gatewayv1.Namespace("infra"))}, state.GatewayKey("infra", "g"), true,
		},
		"all defaults are explicit": {
			gatewayv1.ParentGatewayReference{Name: "g", Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway"))},
			state.GatewayKey("team", "g"), true,
		},
		"another group": {
			ref: gatewayv1.ParentGatewayReference{Name: "g", Group: new(gatewayv1.Group("example.com"))},
		},
		"another kind": {
			ref: gatewayv1.ParentGatewayReference{Name: "g", Kind: new(gatewayv1.Kind("Mesh"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := &gatewayv1.ListenerSet{}
			set.Namespace, set.Spec.ParentRef = "team", test.ref
			got, ok := state.ParentGateway(set)
			if ok != test.wantOK || ok && got != test.want {
				t.Errorf("ParentGateway = %v, %t, want %v, %t", got, ok, test.want, test.wantOK)
			}
		})
	}
}
