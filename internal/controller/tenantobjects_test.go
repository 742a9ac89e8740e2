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

func TestOnlyStatusIsWrittenOutsideTheControllersNamespace(t *testing.T) {
	// Outside its own namespace the controller writes only status, during a Gateway's
	// whole lifecycle.
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
		t.Fatal("the Tunnel was not deleted")
	}
	outside := map[string]bool{}
	for _, w := range h.drainWrites() {
		switch {
		case w.namespace == controllerNamespace:
		case w.subresource != "status":
			t.Errorf("the controller wrote more than status: %s", w)
		default:
			outside[w.kind] = true
		}
	}
	if diff := cmp.Diff([]string{"Gateway", "HTTPRoute", "ListenerSet"}, slices.Sorted(maps.Keys(outside))); diff != "" {
		t.Errorf("kinds with written statuses differ (-want +got):\n%s", diff)
	}
	for _, object := range []client.Object{newRoute(), set} {
		if err := h.kube.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		if len(object.GetFinalizers())+len(object.GetAnnotations())+len(object.GetLabels()) > 0 {
			t.Errorf("%s has finalizers, annotations or labels", object.GetName())
		}
	}
}

func TestAnnotationsCannotClaimATunnel(t *testing.T) {
	// A Gateway can neither claim nor delete a tunnel by naming it in annotations.
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
		t.Fatal("the attacker claimed the tunnel")
	}
	h.drainWrites()
	h.delete(attacker)
	h.reconcileFor(3 * time.Minute)
	if remaining := h.cloud.LiveTunnels(); len(remaining) != 1 || remaining[0].ID != victim {
		t.Errorf("the tunnels are %+v, want only %s", remaining, victim)
	}
	for _, w := range h.drainWrites() {
		if w.kind == "Gateway" && w.subresource == "" {
			t.Errorf("the controller changed the Gateway: %s", w)
		}
	}
	h.key = shared
	h.reconcileFor(time.Second)
	h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
}

func TestForgedAnnotationIsIgnoredAfterARestart(t *testing.T) {
	// The controller ignores an earlier version's tunnel annotation, even after a
	// restart.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	id := h.tunnelID()
	h.annotate("tunnelgateway.dev/tunnel", `{"tunnel":"00000000-0000-4000-8000-000000000099","origin":"adopted"}`)
	h.restart()
	h.reconcileFor(time.Minute)
	if h.tunnelID() != id || len(h.cloud.LiveTunnels()) != 1 {
		t.Errorf("the Gateway has tunnel %s of %+v, want only %s", h.tunnelID(), h.cloud.LiveTunnels(), id)
	}
}
