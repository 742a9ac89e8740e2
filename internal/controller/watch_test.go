package controller

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// watchedManifests describes a cluster in which each object affects different Gateways.
const watchedManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec: {gatewayClassName: tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: second, namespace: infra}
spec: {gatewayClassName: tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: infra}
spec: {gatewayClassName: other, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: team}
spec: {parentRef: {name: shared, namespace: infra}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: odd, namespace: team}
spec: {parentRef: {group: example.com, kind: Mesh, name: shared, namespace: infra}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set, namespace: elsewhere}
spec: {parentRef: {name: second, namespace: infra}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: by-set, namespace: team}
spec:
  parentRefs: [{kind: ListenerSet, name: set}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: moved, namespace: elsewhere}
spec:
  parentRefs: [{name: other, namespace: infra}]
  rules: [{backendRefs: [{name: web, namespace: team, port: 80}]}]
status:
  parents:
  - parentRef: {name: second, namespace: infra}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - parentRef: {kind: ListenerSet, name: deleted}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - parentRef: {name: shared, namespace: infra}
    controllerName: example.com/other
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: AccessPolicy
metadata: {name: moved, namespace: team}
spec:
  targetRefs:
  - {group: gateway.networking.k8s.io, kind: ListenerSet, name: set}
  - {group: gateway.networking.k8s.io, kind: ListenerSet, name: set, sectionName: a}
  - {group: gateway.networking.k8s.io, kind: ListenerSet, name: deleted}
  - {group: gateway.networking.k8s.io, kind: Gateway, name: gone}
  policies: [employees]
status:
  ancestors:
  - ancestorRef: {name: second, namespace: infra}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - ancestorRef: {kind: ListenerSet, name: set, namespace: elsewhere}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - ancestorRef: {name: other, namespace: infra}
    controllerName: example.com/other
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

// watchedCluster returns a client with the watched manifests and the indexes.
func watchedCluster(t *testing.T) client.WithWatch {
	t.Helper()
	set, err := manifest.Parse("in.yaml", []byte(watchedManifests), manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(set.Objects...).WithStatusSubresource(&gatewayv1.HTTPRoute{})
	for _, index := range state.Indexes(controllerName) {
		builder.WithIndex(index.Object, index.Field, index.Extract)
	}
	return builder.Build()
}

func withName[T client.Object](namespace, name string, object T) T {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

// readObject reads an object from the watched cluster.
func readObject[T client.Object](t *testing.T, c client.Reader, namespace, name string, object T) T {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestWatchesMapAChangeToTheGatewaysItAffects(t *testing.T) {
	reader := watchedCluster(t)
	w := watches{reader: reader, controllerName: controllerName}
	ctx := t.Context()
	movedSet := readObject(t, reader, "team", "set", &gatewayv1.ListenerSet{})
	movedSet.Spec.ParentRef.Name = "other"
	deletedSet := withName("team", "deleted", &gatewayv1.ListenerSet{})
	deletedSet.Spec.ParentRef.Name = "gone"
	for name, test := range map[string]struct {
		keys func() ([]state.Key, error)
		want []string
	}{
		"an unmanaged Gateway affects itself": {
			func() ([]state.Key, error) {
				return w.fromGateway(ctx, withName("infra", "other", &gatewayv1.Gateway{}))
			},
			[]string{"Gateway infra/other"},
		},
		"a class affects its Gateways": {
			func() ([]state.Key, error) {
				return w.fromClass(ctx, withName("", "tunnel", &gatewayv1.GatewayClass{}))
			},
			[]string{"Gateway infra/second", "Gateway infra/shared"},
		},
		"a class without Gateways affects nothing": {
			func() ([]state.Key, error) {
				return w.fromClass(ctx, withName("", "unused", &gatewayv1.GatewayClass{}))
			},
			nil,
		},
		"a ListenerSet affects its Gateway": {
			func() ([]state.Key, error) {
				return w.fromListenerSet(ctx, readObject(t, reader, "team", "set", &gatewayv1.ListenerSet{}))
			},
			[]string{"Gateway infra/shared"},
		},
		"a ListenerSet that has moved affects both Gateways": {
			func() ([]state.Key, error) { return w.fromListenerSet(ctx, movedSet) },
			[]string{"Gateway infra/other", "Gateway infra/shared"},
		},
		// Routes may have status entries for the deleted ListenerSet.
		"a deleted ListenerSet affects its Gateway and itself": {
			func() ([]state.Key, error) { return w.fromListenerSet(ctx, deletedSet) },
			[]string{"Gateway team/gone", "ListenerSet team/deleted"},
		},
		"a ListenerSet whose parent is not a Gateway affects itself": {
			func() ([]state.Key, error) {
				return w.fromListenerSet(ctx, readObject(t, reader, "team", "odd", &gatewayv1.ListenerSet{}))
			},
			[]string{"ListenerSet team/odd"},
		},
		"a route affects the Gateway of its ListenerSet": {
			func() ([]state.Key, error) {
				return w.fromRoute(ctx, readObject(t, reader, "team", "by-set", &gatewayv1.HTTPRoute{}))
			},
			[]string{"Gateway infra/shared"},
		},
		"a route affects its parents in spec and status": {
			func() ([]state.Key, error) {
				return w.fromRoute(ctx, readObject(t, reader, "elsewhere", "moved", &gatewayv1.HTTPRoute{}))
			},
			[]string{"Gateway infra/other", "Gateway infra/second", "ListenerSet elsewhere/deleted"},
		},
		"a namespace affects the Gateways of its ListenerSets and routes": {
			func() ([]state.Key, error) { return w.fromNamespace(ctx, withName("", "team", &corev1.Namespace{})) },
			[]string{"Gateway infra/shared"},
		},
		"an empty namespace affects nothing": {
			func() ([]state.Key, error) { return w.fromNamespace(ctx, withName("", "empty", &corev1.Namespace{})) },
			nil,
		},
		"a Service affects the Gateways of routes that refer to it": {
			func() ([]state.Key, error) { return w.fromService(ctx, withName("team", "web", &corev1.Service{})) },
			[]string{"Gateway infra/other", "Gateway infra/second", "Gateway infra/shared", "ListenerSet elsewhere/deleted"},
		},
		"an AccessPolicy affects the Gateways of its targets and in its status": {
			func() ([]state.Key, error) {
				return w.fromAccessPolicy(ctx, readObject(t, reader, "team", "moved", &v1alpha1.AccessPolicy{}))
			},
			[]string{"Gateway infra/second", "Gateway infra/shared", "Gateway team/gone", "ListenerSet team/deleted"},
		},
		"a Service with the same name in another namespace affects nothing": {
			func() ([]state.Key, error) {
				return w.fromService(ctx, withName("elsewhere", "web", &corev1.Service{}))
			},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := test.keys()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, key := range keys {
				got = append(got, key.String())
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, slices.Compact(got)); diff != "" {
				t.Errorf("keys differ (-want +got):\n%s", diff)
			}
		})
	}
}

// watchedKinds adds the resources in a table of watches.
func watchedKinds[K comparable](found map[string]bool, all []watch[K]) {
	for _, w := range all {
		found[w.kind.Resource().String()] = true
	}
}

func TestEveryKindIsWatched(t *testing.T) {
	found := map[string]bool{}
	watchedKinds(found, watches{}.all(nil))
	watchedKinds(found, (&classReconciler{}).watches())
	watchedKinds(found, (&envoys{}).watches())
	want := map[string]bool{}
	for _, kind := range (*AccessPolicies)(nil).Kinds() { // ServiceImports are watched while the cluster has them
		want[kind.Resource().String()] = true
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("kinds (-listed +watched):\n%s", diff)
	}
}

// Without their CRD, a watch of AccessPolicies would delay all reconciles.
func TestAccessPoliciesAreNotWatchedWithoutTheirCRD(t *testing.T) {
	absent := NewAccessPolicies(CRDs{}, logr.Discard())
	found := map[string]bool{}
	watchedKinds(found, watches{policies: absent}.all(nil))
	isPolicy := func(k kinds.Kind) bool { return k.GVK() == kinds.AccessPolicy.GVK() }
	if found[accessPolicyCRD] || slices.ContainsFunc(absent.Kinds(), isPolicy) {
		t.Error("AccessPolicies are watched")
	}
	if len(absent.Kinds()) != len((*AccessPolicies)(nil).Kinds())-1 {
		t.Errorf("got the kinds %v, want all others", absent.Kinds())
	}
}

func TestEveryWatchAcceptsTheObjectsOfItsKind(t *testing.T) {
	w := watches{reader: watchedCluster(t), controllerName: controllerName}
	for _, row := range w.all(func(state.Key) {}) {
		ctx := log.IntoContext(t.Context(), funcr.New(func(_, line string) { t.Errorf("watch of %s: %s", row.kind.Plural, line) }, funcr.Options{}))
		object := row.kind.NewWatched()
		queue := workqueue.NewTypedRateLimitingQueue(rateLimiter[state.Key]())
		row.handler.Create(ctx, event.CreateEvent{Object: object}, queue)
		queue.ShutDown()
		if row.filter != nil {
			row.filter.Update(event.UpdateEvent{ObjectOld: object, ObjectNew: object})
		}
	}
}

func TestWatchesReturnReadErrors(t *testing.T) {
	errRead := errors.New("the cache is broken")
	w := watches{controllerName: controllerName, reader: interceptor.NewClient(watchedCluster(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errRead
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*gatewayv1.GatewayList); ok {
				return errRead
			}
			return c.List(ctx, list, opts...)
		},
	})}
	reader := watchedCluster(t)
	for name, keys := range map[string]func() ([]state.Key, error){
		"class": func() ([]state.Key, error) {
			return w.fromClass(t.Context(), withName("", "tunnel", &gatewayv1.GatewayClass{}))
		},
		"set": func() ([]state.Key, error) {
			return w.fromListenerSet(t.Context(), readObject(t, reader, "team", "set", &gatewayv1.ListenerSet{}))
		},
		"route": func() ([]state.Key, error) {
			return w.fromRoute(t.Context(), readObject(t, reader, "team", "by-set", &gatewayv1.HTTPRoute{}))
		},
		"namespace": func() ([]state.Key, error) {
			return w.fromNamespace(t.Context(), withName("", "team", &corev1.Namespace{}))
		},
		"service": func() ([]state.Key, error) {
			return w.fromService(t.Context(), withName("team", "web", &corev1.Service{}))
		},
	} {
		if _, err := keys(); !errors.Is(err, errRead) {
			t.Errorf("%s: got error %v, want %v", name, err, errRead)
		}
	}
}

func TestServiceChangesThatCount(t *testing.T) {
	service := withName("team", "web", &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	withStatus := service.DeepCopy()
	withStatus.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	withStatus.Annotations = map[string]string{"a": "b"}
	withHints := service.DeepCopy()
	withHints.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	withPort := service.DeepCopy()
	withPort.Spec.Ports[0].Port = 81
	for name, test := range map[string]struct {
		after *corev1.Service
		want  bool
	}{
		"its status and metadata": {withStatus, false},
		"its topology hints":      {withHints, true},
		"its spec":                {withPort, true},
	} {
		if got := serviceChanged.Update(event.UpdateEvent{ObjectOld: service, ObjectNew: test.after}); got != test.want {
			t.Errorf("an update of %s passes: %t, want %t", name, got, test.want)
		}
	}
	if !serviceChanged.Create(event.CreateEvent{Object: service}) || !serviceChanged.Delete(event.DeleteEvent{Object: service}) {
		t.Error("the creation or the deletion of a Service does not pass")
	}
}

func TestOnlyNamespaceLabelsAndPermittedHostnamesCount(t *testing.T) {
	namespace := func(labels, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: labels, Annotations: annotations}}
	}
	for name, test := range map[string]struct {
		before, after *corev1.Namespace
		want          bool
	}{
		"another annotation":    {namespace(nil, nil), namespace(nil, map[string]string{"a": "b"}), false},
		"a label":               {namespace(nil, nil), namespace(map[string]string{"a": "b"}, nil), true},
		"a new permission":      {namespace(nil, nil), namespace(nil, map[string]string{hostnames.Annotation: ""}), true},
		"a changed permission":  {namespace(nil, map[string]string{hostnames.Annotation: "*"}), namespace(nil, map[string]string{hostnames.Annotation: ""}), true},
		"a removed permission":  {namespace(nil, map[string]string{hostnames.Annotation: "*"}), namespace(nil, nil), true},
		"the same permission":   {namespace(nil, map[string]string{hostnames.Annotation: "*"}), namespace(nil, map[string]string{hostnames.Annotation: "*", "a": "b"}), false},
		"a permission for none": {namespace(nil, map[string]string{hostnames.Annotation: ""}), namespace(nil, nil), true},
	} {
		if got := namespaceChanged.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("an update of %s passes: %t, want %t", name, got, test.want)
		}
	}
}
