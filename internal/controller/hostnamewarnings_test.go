package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
)

func TestInvalidHostnameEntriesAreReportedOnce(t *testing.T) {
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set", Generation: 1}}
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Namespace: ptr.To(gatewayv1.Namespace("infra")), Name: "shared"}
	set.Spec.Listeners = []gatewayv1.ListenerEntry{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType, Hostname: ptr.To(gatewayv1.Hostname("team.example.com"))}}
	route := newRoute()
	route.Namespace, route.Spec.ParentRefs[0] = "team", gatewayv1.ParentReference{Kind: ptr.To(gatewayv1.Kind("ListenerSet")), Name: "set"}
	team := namespaceObject("team")
	team.Annotations = map[string]string{hostnames.Annotation: "team.example.com, 192.0.2.1"}
	h := newHarness(t, set, route, team)
	h.changeGateway(func(g *gatewayv1.Gateway) {
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}}
	})
	warnings := func() int {
		h.t.Helper()
		h.reconcileFor(time.Second)
		return len(slices.DeleteFunc(h.drainEvents(), func(e string) bool { return !strings.Contains(e, "InvalidHostnameEntry") }))
	}
	wantWarnings := func(want int, situation string) {
		h.t.Helper()
		if got := warnings(); got != want {
			h.t.Errorf("%s: %d events, want %d", situation, got, want)
		}
	}
	wantWarnings(0, "the class permits all hostnames")
	h.changeConfiguration(func(spec *v1alpha1.TunnelConfigurationSpec) {
		spec.Hostnames = &v1alpha1.Hostnames{From: ptr.To(v1alpha1.HostnamesFromNamespaceAnnotation)}
	})
	wantWarnings(2, "an entry is not valid") // for the ListenerSet and the route
	h.setHostname("b.example.com")
	wantWarnings(0, "the entry was reported before")
	annotate := func(value string) {
		namespace := &corev1.Namespace{}
		h.change("", "team", namespace, func() { namespace.Annotations = map[string]string{hostnames.Annotation: value} })
	}
	annotate("team.example.com")
	wantWarnings(0, "all entries are valid")
	annotate("TEAM.example.com")
	wantWarnings(2, "another entry is not valid")
}
