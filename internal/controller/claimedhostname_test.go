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

// expectedToFail runs a check that fails because of a known defect, and fails the test
// when the check passes.
func expectedToFail(t *testing.T, reason string, check func(testing.TB)) {
	t.Helper()
	r := &recorder{TB: t}
	if check(r); !r.failed {
		t.Errorf("the check passes although it is expected to fail: %s", reason)
	}
}

// recorder records whether a check fails.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

// A ListenerSet of another tenant claims a hostname that the route names. The event does
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
	expectedToFail(t, "nothing reports the claim to the owner of the route", func(tb testing.TB) {
		h.reconcileFor(time.Second)
		events := slices.DeleteFunc(h.drainEvents(), func(e string) bool { return !strings.HasPrefix(e, "Warning HostnameClaimed ") })
		if len(events) != 1 {
			tb.Errorf("the events are %q, want 1", events)
		}
	})
}
