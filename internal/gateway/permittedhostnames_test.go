package gateway_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

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

// demandPermissions makes the GatewayClass demand permissions for hostnames.
func demandPermissions(s *gateway.Snapshot) {
	s.ClassConfiguration.Spec.Hostnames = &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)}
}

func TestAgeDoesNotWinAnotherTeamsHostname(t *testing.T) {
	s := tenantsSnapshot("shop.team-b.example.com", "shop.team-b.example.com")
	demandPermissions(s)
	permit(s, "team-a", "*.team-a.example.com")
	permit(s, "team-b", "*.team-b.example.com")
	if got := ownerOf(gateway.Build(s, options), "shop.team-b.example.com"); got != "team-b" {
		t.Errorf("%q serves the hostname of team-b", got)
	}
}

// A route without hostnames has those of its parent's listeners.
func TestARejectedRouteIsNotPartOfTheTraceOfOtherHostnames(t *testing.T) {
	s := tenantsSnapshot("shop.example.com", "wiki.example.com")
	demandPermissions(s)
	permit(s, "team-a", "*.team-a.example.com")
	permit(s, "team-b", "wiki.example.com")
	result := gateway.Build(s, options)
	for host, want := range map[string]int{"shop.example.com": 1, "wiki.example.com": 0} {
		if got := result.Trace(routing.Request{Host: host, Path: "/"}).Unserved; len(got) != want {
			t.Errorf("%s: %d routes match and do not serve the request, want %d", host, len(got), want)
		}
	}
}

func TestAHostnameGoesToTheNextPermittedClaimant(t *testing.T) {
	const hostname = "shop.example.com"
	s := tenantsSnapshot(hostname, hostname, hostname)
	demandPermissions(s)
	permit(s, "team-a", hostname)
	permit(s, "team-c", "*.example.com")
	if got := ownerOf(gateway.Build(s, options), hostname); got != "team-a" {
		t.Fatalf("%q serves the hostname, want the oldest claimant", got)
	}
	s.ListenerSets = s.ListenerSets[1:]
	if got := ownerOf(gateway.Build(s, options), hostname); got != "team-c" {
		t.Errorf("%q serves the hostname after its claim has ended, want team-c, because team-b has no permission", got)
	}
	permit(s, "team-c", "")
	if got := ownerOf(gateway.Build(s, options), hostname); got != "" {
		t.Errorf("%q serves the hostname without a permission", got)
	}
}

func TestIPAddressesAndNonCanonicalPunycodeAreNotServed(t *testing.T) {
	for _, hostname := range []string{"192.0.2.1", "xn--shop-9.example.com"} {
		if got := ownerOf(gateway.Build(tenantsSnapshot(hostname), options), hostname); got != "" {
			t.Errorf("%s serves %s", got, hostname)
		}
	}
}

// The admission policy in the chart is tested with the same cases.
func TestListenersGetThePermissionOfTheirNamespace(t *testing.T) {
	content, err := os.ReadFile("../hostnames/testdata/permissions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Annotation       *string
		Hostname, Result string
	}
	if err := yaml.Unmarshal(content, &vectors); err != nil || len(vectors) == 0 {
		t.Fatalf("%d cases: %v", len(vectors), err)
	}
	for _, v := range vectors {
		s := tenantsSnapshot(v.Hostname)
		demandPermissions(s)
		if v.Annotation != nil {
			permit(s, "team-a", *v.Annotation)
		}
		if v.Hostname == "" {
			s.ListenerSets[0].Spec.Listeners[0].Hostname = nil
		}
		got := "Accepted"
		if rejected := gateway.Build(s, options).Sets[0].Listeners[0].Rejected; rejected != nil {
			got = rejected.Reason.String()
		}
		if got != v.Result {
			t.Errorf("annotation %q, hostname %q: got %s, want %s", s.Namespaces["team-a"].Annotations, v.Hostname, got, v.Result)
		}
	}
}
