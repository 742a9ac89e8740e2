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

// TestEveryOrderOfApplyingIsHealthyInTheEnd, and who complains meanwhile: only
// what refers to something that is not there yet.
func TestEveryOrderOfApplyingIsHealthyInTheEnd(t *testing.T) {
	w := newWorld(t)
	w.start()
	byKind := map[string][]*unstructured.Unstructured{}
	for _, object := range append(w.read("deployment-tools/argo-cd/platform.yaml", "10-team-a.yaml"), apiToken()) {
		byKind[object.GetKind()] = append(byKind[object.GetKind()], object)
	}
	apply := func(kind string) {
		w.g.Expect(byKind[kind]).NotTo(BeEmpty(), kind)
		for _, object := range byKind[kind] {
			w.createObject(object)
		}
	}
	apply("Namespace")
	const class, gateway, set, route = "GatewayClass platform", "Gateway platform/shared", "ListenerSet team-a/team-a", "HTTPRoute team-a/web"
	steps := []struct {
		kind  string
		then  map[string]string // by Argo CD
		never []string          // degraded so far
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
		for name, health := range step.then {
			w.expectVerdict(name, argoCD, health)
		}
		for _, name := range step.never {
			w.g.Expect(w.history.seen(name, w.judges[argoCD])).NotTo(ContainElement(healthDegraded), "%s after %s", name, step.kind)
		}
	}
	w.expectHealthy("the end")
}

// TestArgoCDsOrderDegradesNothingOnItsWay, which it would take for the failure
// of a wave: one Application before the platform's, and one after it.
func TestArgoCDsOrderDegradesNothingOnItsWay(t *testing.T) {
	w := newWorld(t)
	w.start()
	const platform = "deployment-tools/argo-cd/platform.yaml"
	for _, application := range []string{"deployment-tools/argo-cd/team-c.yaml", platform, "10-team-a.yaml"} {
		objects := w.read(application)
		if application == platform {
			objects = append(objects, apiToken())
		}
		w.sync(objects)
	}
	w.expectHealthy("the last Application")
	w.expectNoFlaps("Argo CD's order")
}

// apiToken returns the Secret that the platform's objects need, and that is
// not from Git.
func apiToken() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"name": "cloudflare-api-token", "namespace": cluster.ControllerNamespace},
		"stringData": map[string]any{"token": "token"},
	}}
}

// sync applies the objects of an Application in waves, and in a wave the kinds
// that Argo CD knows before all others. It goes on to the next wave when all
// of one are healthy, and does not wait for the last.
func (w *world) sync(objects []*unstructured.Unstructured) {
	w.t.Helper()
	waves := map[int][]*unstructured.Unstructured{}
	for _, object := range objects {
		wave, err := strconv.Atoi(cmp.Or(object.GetAnnotations()["argocd.argoproj.io/sync-wave"], "0"))
		w.g.Expect(err).NotTo(HaveOccurred())
		waves[wave] = append(waves[wave], object)
	}
	var applied []*unstructured.Unstructured
	for _, wave := range slices.Sorted(maps.Keys(waves)) {
		for _, object := range applied {
			if slices.Contains(judged, object.GroupVersionKind()) {
				w.expectVerdict(nameOf(object), argoCD, healthHealthy)
			}
		}
		slices.SortStableFunc(waves[wave], func(a, b *unstructured.Unstructured) int { return place(a) - place(b) })
		for _, object := range waves[wave] {
			w.createObject(object)
			applied = append(applied, object)
		}
	}
}

// place is where Argo CD has a kind among the others.
func place(object *unstructured.Unstructured) int {
	known := []string{"Namespace", "Secret", "Service"}
	if i := slices.Index(known, object.GetKind()); i >= 0 {
		return i
	}
	return len(known)
}

// TestPrunedGatewayIsGoneAtOnce: nothing holds up a tool that waits for what it
// prunes, and the tunnel is deleted when the controller is back.
func TestPrunedGatewayIsGoneAtOnce(t *testing.T) {
	w := newWorld(t)
	w.create("00-platform.yaml")
	w.start()
	w.expectHealthy("the samples")
	w.stop()
	gateway := &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "shared"}}
	w.g.Expect(w.kube.Delete(t.Context(), gateway)).To(Succeed())
	w.g.Expect(w.exists(gateway)).To(BeFalse())
	tunnelExists := func() bool { _, found := w.edge.TunnelID("health.platform.shared"); return found }
	w.g.Expect(tunnelExists()).To(BeTrue())

	w.edge.Inject(simulator.Fault{Method: http.MethodDelete, Times: 1, Status: http.StatusBadGateway})
	w.start()
	w.g.Eventually(tunnelExists, 90*time.Second).Should(BeFalse())
}

func (w *world) exists(object client.Object) bool {
	err := w.kube.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	return !apierrors.IsNotFound(err)
}
