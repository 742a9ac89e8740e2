package controller

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// On objects of tenants the controller writes status and nothing else, whatever
// happens to the Gateway.
func TestOnlyStatusIsWrittenOutsideTheControllersNamespace(t *testing.T) {
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "set", Generation: 1}}
	set.Spec.ParentRef.Name = "shared"
	set.Spec.Listeners = []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	h := newConnectorHarness(t, set)
	h.reconcileFor(time.Second)
	h.setHostname("b.example.com")
	h.reconcileFor(time.Second)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileFor(time.Second)
	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(3 * time.Minute)
	if h.tunnelObject() != nil {
		t.Fatal("the Tunnel is left")
	}
	outside := map[string]bool{}
	for _, w := range h.drainWrites() {
		switch {
		case w.namespace == controllerNamespace:
		case w.subresource != "status":
			t.Errorf("the controller writes more than status: %s", w)
		default:
			outside[w.kind] = true
		}
	}
	if diff := cmp.Diff([]string{"Gateway", "HTTPRoute", "ListenerSet"}, slices.Sorted(maps.Keys(outside))); diff != "" {
		t.Errorf("the kinds whose statuses are written differ (-want +got):\n%s", diff)
	}
	for _, object := range []client.Object{newRoute(), set} {
		if err := h.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if len(object.GetFinalizers())+len(object.GetAnnotations())+len(object.GetLabels()) > 0 {
			t.Errorf("%s has finalizers, annotations or labels of the controller", object.GetName())
		}
	}
}

// A Gateway cannot claim what its annotations name, and cannot have it deleted.
func TestAnnotationsCannotClaimATunnel(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	victim := h.tunnelID()
	attacker := newGateway("attacker", "b.example.com")
	attacker.Annotations = map[string]string{
		"tunnelgateway.dev/tunnel": `{"controller":"` + controllerName + `","account":"00000000000000000000000000000000","tunnel":"` + string(victim) +
			`","origin":"created","hash":"x"}`,
		"tunnelgateway.dev/takeover": "true", "tunnelgateway.dev/deletion-policy": "Retain", v1alpha1.RotateTokenAnnotation: "1",
	}
	attacker.Finalizers = []string{"tunnelgateway.dev/tunnel"}
	h.create(attacker)
	shared := h.key
	h.key.Name = "attacker"
	h.reconcileFor(time.Second)
	if h.tunnelID() == victim {
		t.Fatal("the attacker has the tunnel")
	}
	h.drainWrites()
	h.delete(attacker)
	h.reconcileFor(3 * time.Minute)
	if left := h.cloud.LiveTunnels(); len(left) != 1 || left[0].ID != victim {
		t.Errorf("the tunnels are %+v", left)
	}
	for _, w := range h.drainWrites() {
		if w.kind == "Gateway" && w.subresource == "" {
			t.Errorf("the controller changes the Gateway: %s", w)
		}
	}
	h.key = shared
	h.reconcileFor(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

// A change of the annotation with the tunnel of an earlier version is no event
// that the controller responds to, also after a restart.
func TestForgedAnnotationIsIgnoredAfterARestart(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	id := h.tunnelID()
	h.annotate("tunnelgateway.dev/tunnel", `{"tunnel":"00000000-0000-4000-8000-000000000099","origin":"adopted"}`)
	h.restart()
	h.reconcileFor(time.Minute)
	if h.tunnelID() != id || len(h.cloud.LiveTunnels()) != 1 {
		t.Errorf("the Gateway has tunnel %s of %+v", h.tunnelID(), h.cloud.LiveTunnels())
	}
}
