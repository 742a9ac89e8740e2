package health

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// TestObjectsBecomeHealthyWhenParentsAreAppliedLast applies referenced objects after
// the objects that reference them. In the meantime, only objects with unresolved
// references are degraded.
func TestObjectsBecomeHealthyWhenParentsAreAppliedLast(t *testing.T) {
	e := newEnvironment(t)
	e.startController()
	byKind := map[string][]*unstructured.Unstructured{}
	for _, object := range append(e.readSamples("deployment-tools/argo-cd/platform.yaml", "10-team-a.yaml"), apiToken()) {
		byKind[object.GetKind()] = append(byKind[object.GetKind()], object)
	}
	apply := func(kind string) {
		e.g.Expect(byKind[kind]).NotTo(BeEmpty(), kind)
		for _, object := range byKind[kind] {
			e.createObject(object)
		}
	}
	apply("Namespace")
	const class, gateway, set, route = "GatewayClass platform", "Gateway platform/shared", "ListenerSet team-a/team-a", "HTTPRoute team-a/web"
	steps := []struct {
		kind        string
		expected    map[string]string // health in Argo CD after the step
		notDegraded []string          // objects that have never been degraded
	}{
		{"HTTPRoute", map[string]string{route: healthProgressing}, []string{route}},
		{"ListenerSet", map[string]string{set: healthProgressing, route: healthProgressing}, []string{route, set}},
		{"Gateway", map[string]string{gateway: healthProgressing, set: healthProgressing}, []string{route, set, gateway}},
		{"GatewayClass", map[string]string{class: healthDegraded, gateway: healthDegraded, set: healthDegraded, route: healthDegraded}, nil},
		{"TunnelConfiguration", map[string]string{class: healthHealthy, gateway: healthProgressing, set: healthProgressing}, nil},
		{"Secret", map[string]string{gateway: healthHealthy, set: healthHealthy, route: healthDegraded}, nil},
		{"Service", map[string]string{route: healthHealthy}, nil},
	}
	for _, step := range steps {
		apply(step.kind)
		for name, health := range step.expected {
			e.expectHealth(name, argoCD, health)
		}
		for _, name := range step.notDegraded {
			e.g.Expect(e.history.healthChanges(name, e.checks[argoCD])).NotTo(ContainElement(healthDegraded), "%s after %s", name, step.kind)
		}
	}
	e.expectHealthy("the last step")
}

// TestArgoCDSyncOrderDegradesNoObject applies an Application before the platform's
// Application, and another after it. If an object is degraded, Argo CD considers the sync
// wave failed.
func TestArgoCDSyncOrderDegradesNoObject(t *testing.T) {
	e := newEnvironment(t)
	e.startController()
	const platform = "deployment-tools/argo-cd/platform.yaml"
	for _, application := range []string{"deployment-tools/argo-cd/team-c.yaml", platform, "10-team-a.yaml"} {
		objects := e.readSamples(application)
		if application == platform {
			objects = append(objects, apiToken())
		}
		e.sync(objects)
	}
	e.expectHealthy("the last Application")
	e.expectNoFlaps("Argo CD's order")
}

// apiToken returns the Secret that the platform's objects reference. It is not stored
// in Git.
func apiToken() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"name": "cloudflare-api-token", "namespace": cluster.ControllerNamespace},
		"stringData": map[string]any{"token": "token"},
	}}
}

// sync applies an Application's objects like Argo CD: wave by wave, and built-in kinds
// first. It waits until all objects in a wave are healthy, except for the last wave.
func (e *environment) sync(objects []*unstructured.Unstructured) {
	e.t.Helper()
	waves := map[int][]*unstructured.Unstructured{}
	for _, object := range objects {
		wave, err := strconv.Atoi(cmp.Or(object.GetAnnotations()["argocd.argoproj.io/sync-wave"], "0"))
		e.g.Expect(err).NotTo(HaveOccurred())
		waves[wave] = append(waves[wave], object)
	}
	var applied []*unstructured.Unstructured
	for _, wave := range slices.Sorted(maps.Keys(waves)) {
		for _, object := range applied {
			if slices.Contains(watchedKinds, object.GroupVersionKind()) {
				e.expectHealth(historyName(object), argoCD, healthHealthy)
			}
		}
		slices.SortStableFunc(waves[wave], func(a, b *unstructured.Unstructured) int { return kindOrder(a) - kindOrder(b) })
		for _, object := range waves[wave] {
			e.createObject(object)
			applied = append(applied, object)
		}
	}
}

// kindOrder returns the position of the object's kind in Argo CD's sync order.
func kindOrder(object *unstructured.Unstructured) int {
	builtin := []string{"Namespace", "Secret", "Service"}
	if i := slices.Index(builtin, object.GetKind()); i >= 0 {
		return i
	}
	return len(builtin)
}

// TestGatewayIsDeletedWhileTheControllerIsStopped checks that no finalizer blocks a
// tool that prunes a Gateway, and that the controller deletes the tunnel after its
// start.
func TestGatewayIsDeletedWhileTheControllerIsStopped(t *testing.T) {
	e := newEnvironment(t)
	e.create("00-platform.yaml")
	e.startController()
	e.expectHealthy("the samples")
	e.stopController()
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared"}}
	e.g.Expect(e.kube.Delete(t.Context(), gateway)).To(Succeed())
	e.g.Expect(e.exists(gateway)).To(BeFalse())
	tunnelExists := func() bool { _, found := e.edge.TunnelID("health.platform.shared"); return found }
	e.g.Expect(tunnelExists()).To(BeTrue())

	e.edge.Inject(simulator.Fault{Method: http.MethodDelete, Times: 1, Status: http.StatusBadGateway})
	e.startController()
	e.g.Eventually(tunnelExists, 90*time.Second).Should(BeFalse())
}

func (e *environment) exists(object client.Object) bool {
	err := e.kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	return !apierrors.IsNotFound(err)
}
