package controller

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// newListenerSet returns ListenerSet infra/team, attached to Gateway infra/shared.
func newListenerSet() *gatewayv1.ListenerSet {
	return &gatewayv1.ListenerSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "team", Generation: 1},
		Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Name: "shared"},
			Listeners: []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname("team.example.com"))}},
		},
	}
}

// newOrphanHarness returns a harness with the Gateways shared and other, a ListenerSet
// attached to shared, and a route with the ListenerSet as its only parent.
func newOrphanHarness(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, newListenerSet(), newGateway("other", "b.example.com"), &gatewayv1.GatewayClass{
		ObjectMeta: metav1.ObjectMeta{Name: "of-another-controller"}, Spec: gatewayv1.GatewayClassSpec{ControllerName: "example.com/other"},
	})
	h.changeGateway(func(g *gatewayv1.Gateway) {
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ptr.To(gatewayv1.NamespacesFromSame)}}
	})
	h.setParents(gatewayv1.ParentReference{Kind: ptr.To(gatewayv1.Kind("ListenerSet")), Name: "team"})
	return h
}

func (h *harness) setParents(parents ...gatewayv1.ParentReference) {
	h.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	h.change("infra", "web", route, func() { route.Generation++; route.Spec.ParentRefs = parents })
}

func (h *harness) setGatewayOfSet(name gatewayv1.ObjectName) {
	h.t.Helper()
	set := &gatewayv1.ListenerSet{}
	h.change("infra", "team", set, func() { set.Generation++; set.Spec.ParentRef.Name = name })
}

// reconcileAll reconciles every key that changed objects can affect, and returns the
// events about routes without a parent.
func (h *harness) reconcileAll() []string {
	h.t.Helper()
	set := state.Key{Kind: gateway.KindListenerSet, NamespacedName: types.NamespacedName{Namespace: "infra", Name: "team"}}
	for _, key := range []state.Key{state.GatewayKey("infra", "shared"), set, state.GatewayKey("infra", "none"), state.GatewayKey("infra", "other")} {
		h.key = key
		h.reconcileFor(time.Minute)
	}
	h.key = state.GatewayKey("infra", "shared")
	var found []string
	for _, event := range h.drainEvents() {
		if strings.Contains(event, "NoParent") {
			found = append(found, event)
		}
	}
	return found
}

func TestOrphanedRouteHasOneEvent(t *testing.T) {
	const event = "Warning NoParent The route has lost its last parent, so the controller no longer serves it. "
	ref := func(name string) gatewayv1.ParentReference {
		return gatewayv1.ParentReference{Name: gatewayv1.ObjectName(name)}
	}
	for name, test := range map[string]struct {
		change func(*harness)
		want   string
	}{
		"its ListenerSet is deleted": {func(h *harness) { h.delete(newListenerSet()) }, event + "Check that these parents exist and use this controller: ListenerSet infra/team."},
		"its parentRef names a missing Gateway": {func(h *harness) { h.setParents(ref("none")) },
			event + "Check that these parents exist and use this controller: Gateway infra/none."},
		"its parentRefs are removed": {func(h *harness) { h.setParents() }, event + "Add a Gateway or ListenerSet to spec.parentRefs."},
		"its ListenerSet moves to a missing Gateway": {func(h *harness) { h.setGatewayOfSet("none") },
			event + "Check that these parents exist and use this controller: ListenerSet infra/team."},
		"its Gateway moves to another class": {func(h *harness) {
			h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.GatewayClassName = "of-another-controller" })
		}, event + "Check that these parents exist and use this controller: ListenerSet infra/team."},

		"it moves to another Gateway":              {func(h *harness) { h.setParents(ref("other")) }, ""},
		"it also has another Gateway":              {func(h *harness) { h.setParents(ref("none"), ref("other")) }, ""},
		"its ListenerSet moves to another Gateway": {func(h *harness) { h.setGatewayOfSet("other") }, ""},
		"its Gateway is deleted":                   {func(h *harness) { h.delete(h.gateway()) }, ""},
		"its Gateway is being deleted": {func(h *harness) {
			h.changeGateway(func(g *gatewayv1.Gateway) { g.Finalizers = []string{"example.com/other"} })
			h.delete(h.gateway())
		}, ""},
		"its ListenerSet and then its Gateway are deleted": {func(h *harness) { h.delete(newListenerSet()); h.delete(h.gateway()) }, ""},
		"its Gateway and then its ListenerSet are deleted": {func(h *harness) { h.delete(h.gateway()); h.delete(newListenerSet()) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newOrphanHarness(t)
			h.writer.Notify = notifier{events: h.events}.emitChange
			if early := h.reconcileAll(); len(early) > 0 {
				t.Fatalf("events before the change: %q", early)
			}
			test.change(h)
			got := strings.Join(h.reconcileAll(), "\n")
			if got != test.want {
				t.Errorf("events = %q, want %q", got, test.want)
			}
			if again := h.reconcileAll(); len(again) > 0 {
				t.Errorf("events of later reconciles: %q", again)
			}
			h.restart()
			h.writer.Notify = notifier{events: h.events}.emitChange
			if again := h.reconcileAll(); len(again) > 0 {
				t.Errorf("events after a restart: %q", again)
			}
		})
	}
}

func TestRouteOrphanedDuringDowntimeHasAnEvent(t *testing.T) {
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	h := newOrphanHarness(t)
	h.reconcileAll()
	h.delete(newListenerSet())
	h.restart()
	h.writer.Notify = notifier{events: h.events}.emitChange
	got := h.reconcileAll()
	if len(got) != 1 {
		t.Fatalf("events = %q, want one", got)
	}
	// The troubleshooting page quotes the event.
	text := strings.Join(strings.Fields(string(page)), " ")
	for _, symptom := range []string{"NoParent", "route has lost its last parent"} {
		if !strings.Contains(got[0], symptom) || !strings.Contains(text, symptom) {
			t.Errorf("the event %q or the troubleshooting page does not contain %q", got[0], symptom)
		}
	}
}

func TestDeletedListenerSetsUseNoMemory(t *testing.T) {
	h := newOrphanHarness(t)
	h.reconcileAll()
	h.delete(newListenerSet())
	h.reconcileAll()
	h.reconcileAll() // the route's status has changed
	if _, known := h.sets.last(types.NamespacedName{Namespace: "infra", Name: "team"}); known {
		t.Error("the controller still has a record of the deleted ListenerSet")
	}
}
