package gateway_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// expectedToFail fails the test when the assertion holds.
func expectedToFail(t *testing.T, reason string, holds func() bool) {
	t.Helper()
	if holds() {
		t.Errorf("the assertion holds, although it is expected to fail: %s", reason)
	}
}

// tenantsSnapshot returns a Gateway with one ListenerSet and one route for each
// hostname, in the namespaces team-a, team-b and so on, from the oldest to the youngest.
func tenantsSnapshot(hostnames ...string) *gateway.Snapshot {
	s := teamsSnapshot(0)
	for i, hostname := range hostnames {
		meta := metav1.ObjectMeta{
			Namespace: "team-" + string(rune('a'+i)), Name: "web", Generation: 1, CreationTimestamp: metav1.Unix(int64(1000+i), 0),
		}
		s.Namespaces[meta.Namespace] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace}}
		s.ListenerSets = append(s.ListenerSets, &gatewayv1.ListenerSet{ObjectMeta: meta, Spec: gatewayv1.ListenerSetSpec{
			ParentRef: gatewayv1.ParentGatewayReference{Namespace: new(gatewayv1.Namespace(s.Gateway.Namespace)), Name: gatewayv1.ObjectName(s.Gateway.Name)},
			Listeners: []gatewayv1.ListenerEntry{{Name: "web", Hostname: new(gatewayv1.Hostname(hostname)), Port: 80, Protocol: gatewayv1.HTTPProtocolType}},
		}})
		s.HTTPRoutes = append(s.HTTPRoutes, &gatewayv1.HTTPRoute{ObjectMeta: meta, Spec: gatewayv1.HTTPRouteSpec{
			CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Kind: new(gatewayv1.Kind("ListenerSet")), Name: "web"}}},
			Rules:           []gatewayv1.HTTPRouteRule{{}},
		}})
	}
	return s
}

// permit sets the hostnames that the namespace may use.
func permit(s *gateway.Snapshot, namespace, hostnames string) {
	s.Namespaces[namespace].Annotations = map[string]string{"tunnelgateway.dev/hostnames": hostnames}
}

// ownerOf returns the namespace that serves the hostname, or "".
func ownerOf(r *gateway.Result, hostname string) string {
	for _, group := range r.Table.Groups {
		for _, entry := range group.Entries {
			if entry.Hostname == hostname {
				return entry.Source.Route.Namespace
			}
		}
	}
	return ""
}

func TestAnOlderListenerSetDoesNotGetTheHostnameOfAnotherTeam(t *testing.T) {
	s := tenantsSnapshot("shop.team-b.example.com", "shop.team-b.example.com")
	permit(s, "team-a", "*.team-a.example.com")
	permit(s, "team-b", "*.team-b.example.com")
	expectedToFail(t, "age alone decides who gets a hostname", func() bool {
		return ownerOf(gateway.Build(s, options), "shop.team-b.example.com") == "team-b"
	})
}

func TestIPAddressesAndNonCanonicalPunycodeAreNotServed(t *testing.T) {
	for _, hostname := range []string{"192.0.2.1", "xn--shop-.example.com"} {
		expectedToFail(t, "the controller accepts every hostname that the CRD accepts", func() bool {
			return ownerOf(gateway.Build(tenantsSnapshot(hostname), options), hostname) == ""
		})
	}
}
