package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Another tenant's ListenerSet claims a hostname that the route names. The event does
// not name the other tenant.
func TestAClaimedHostnameCausesOneEventForEachChange(t *testing.T) {
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "secret", Name: "other", Generation: 1}}
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Namespace: ptr.To(gatewayv1.Namespace("infra")), Name: "shared"}
	set.Spec.Listeners = []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname("a.example.org"))}}
	route := newRoute()
	route.Name = "named"
	route.Spec.Hostnames = []gatewayv1.Hostname{"a.example.org", "b.example.org"}
	h := newHarness(t, set, route, namespaceObject("secret"))
	h.setHostname("*.example.org")
	var events []string
	want := func(situation string, n int) {
		t.Helper()
		h.reconcileFor(time.Second)
		events = slices.DeleteFunc(h.drainEvents(), func(e string) bool { return !strings.HasPrefix(e, "Warning HostnameClaimed ") })
		if len(events) != n {
			t.Errorf("%s: the events are %q, want %d", situation, events, n)
		}
	}
	allow := func(from gatewayv1.FromNamespaces) {
		h.changeGateway(func(g *gatewayv1.Gateway) {
			g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &from}}
		})
	}
	want("the Gateway does not allow the set", 0)
	allow(gatewayv1.NamespacesFromAll)
	want("another tenant claims the hostname", 1)
	const message = `Warning HostnameClaimed Requests for spec.hostnames go to other listeners: "a.example.org" to another ListenerSet. Attach the route to the listener with the hostname, or remove the hostname.`
	if len(events) == 1 && events[0] != message {
		t.Errorf("the event is %q, want %q", events[0], message)
	}
	want("the claim was reported before", 0)
	listeners := func(hostnames ...gatewayv1.Hostname) {
		h.change("secret", "other", set, func() {
			set.Spec.Listeners = nil
			for _, hostname := range hostnames {
				set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry{
					Name: gatewayv1.SectionName(hostname), Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: &hostname,
				})
			}
		})
	}
	listeners("a.example.org", "c.example.org")
	want("the tenant claims a hostname that no route names", 0)
	listeners("a.example.org", "b.example.org")
	want("the tenant claims a second hostname of the route", 1)
	allow(gatewayv1.NamespacesFromNone)
	want("the claims end", 0)
	allow(gatewayv1.NamespacesFromAll)
	want("the claims begin again", 1)
}
