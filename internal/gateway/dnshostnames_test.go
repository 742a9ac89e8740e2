package gateway_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// describeHostnames returns a line for each hostname: its name, the namespace of the
// claiming listener, and what applies to it.
func describeHostnames(all []gateway.DNSHostname) []string {
	var lines []string
	for _, h := range all {
		line := h.Name + " " + h.Namespace
		if h.Served {
			line += " served"
		}
		if !h.Permitted {
			line += " not permitted"
		}
		if h.LacksPermission {
			line += ", lost"
		}
		lines = append(lines, line)
	}
	return lines
}

// withGatewayListener adds a listener to the Gateway that admits routes of all namespaces.
func withGatewayListener(s *gateway.Snapshot, hostname string) {
	s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, gatewayv1.Listener{
		Name: gatewayv1.SectionName("l" + hostname[len(hostname)-3:]), Hostname: new(gatewayv1.Hostname(hostname)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
		AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)}},
	})
}

// attachToGateway attaches the route to the Gateway with the hostnames.
func attachToGateway(s *gateway.Snapshot, route int, hostnames ...gatewayv1.Hostname) {
	spec := &s.HTTPRoutes[route].Spec
	spec.ParentRefs = []gatewayv1.ParentReference{{Namespace: new(gatewayv1.Namespace("infra")), Name: "shared"}}
	spec.Hostnames = hostnames
}

func TestHostnamesWithRecords(t *testing.T) {
	for name, test := range map[string]struct {
		hostnames []string // of ListenerSets with a route, in team-a, team-b, …
		change    func(s *gateway.Snapshot)
		want      []string
	}{
		"listeners with routes": {[]string{"a.example.com", "*.b.example.com"}, func(*gateway.Snapshot) {},
			[]string{"*.b.example.com team-b served", "a.example.com team-a served"}},
		"a listener without a route": {[]string{"a.example.com"}, func(s *gateway.Snapshot) { s.HTTPRoutes = nil }, nil},
		"every hostname":             {[]string{""}, func(s *gateway.Snapshot) { s.ListenerSets[0].Spec.Listeners[0].Hostname = nil }, nil},
		"a hostname below a wildcard": {[]string{"*.example.com"}, func(s *gateway.Snapshot) {
			s.HTTPRoutes[0].Spec.Hostnames = []gatewayv1.Hostname{"a.example.com", "b.example.org"}
		}, []string{"a.example.com team-a served"}},
		"a hostname that another listener claims": {[]string{"*.example.com", "a.example.com"}, func(s *gateway.Snapshot) {
			s.HTTPRoutes = s.HTTPRoutes[:1]
			s.HTTPRoutes[0].Spec.Hostnames = []gatewayv1.Hostname{"a.example.com", "b.example.com"}
		}, []string{"b.example.com team-a served"}},
		"a missing Secret": {[]string{"a.example.com"}, func(s *gateway.Snapshot) {
			l := &s.ListenerSets[0].Spec.Listeners[0]
			l.Protocol, l.TLS = gatewayv1.HTTPSProtocolType, &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "missing"}}}
		}, []string{"a.example.com team-a"}},
		"a missing Service": {[]string{"a.example.com"}, func(s *gateway.Snapshot) {
			s.HTTPRoutes[0].Spec.Rules[0].BackendRefs = []gatewayv1.HTTPBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{Name: "missing", Port: new(gatewayv1.PortNumber(80))}}}}
		}, []string{"a.example.com team-a served"}},
		"a route above a limit": {[]string{"a.example.com", "b.example.com"}, func(s *gateway.Snapshot) {
			setLimits(s, v1alpha1.Limits{RulesPerNamespace: new(int32(1))})
			s.HTTPRoutes[1].Spec.Rules = append(s.HTTPRoutes[1].Spec.Rules, gatewayv1.HTTPRouteRule{})
		}, []string{"a.example.com team-a served", "b.example.com team-b"}},
		"a listener that lost its hostname": {[]string{"a.example.com", "a.example.com"}, func(*gateway.Snapshot) {},
			[]string{"a.example.com team-a served"}},
		"two listeners of one object that conflict": {[]string{"a.example.com"}, func(s *gateway.Snapshot) {
			set := &s.ListenerSets[0].Spec
			second := set.Listeners[0]
			second.Name = "again"
			set.Listeners = append(set.Listeners, second)
		}, []string{"a.example.com team-a"}},
		"a ListenerSet that is not allowed": {[]string{"a.example.com"}, func(s *gateway.Snapshot) { s.Gateway.Spec.AllowedListeners = nil }, nil},
		"invalid settings": {[]string{"a.example.com"}, func(s *gateway.Snapshot) {
			s.Gateway.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "missing"}}
		}, []string{"a.example.com team-a"}},
		"an unsupported address": {[]string{"a.example.com"}, func(s *gateway.Snapshot) {
			s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
		}, []string{"a.example.com team-a"}},
		"permissions": {[]string{"a.example.com", "b.example.com", "c.example.com"}, func(s *gateway.Snapshot) {
			demandPermissions(s)
			permit(s, "team-a", "*.example.com")
			permit(s, "team-c", "other.example.com")
		}, []string{"a.example.com team-a served", "b.example.com team-b not permitted, lost", "c.example.com team-c not permitted, lost"}},
		"a route without a permission on the ListenerSet of another namespace": {[]string{"a.example.com", "b.example.com"}, func(s *gateway.Snapshot) {
			demandPermissions(s)
			permit(s, "team-a", "a.example.com")
			s.ListenerSets[0].Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
			s.HTTPRoutes = s.HTTPRoutes[1:]
			s.HTTPRoutes[0].Spec.ParentRefs[0].Namespace = new(gatewayv1.Namespace("team-a"))
		}, []string{"a.example.com team-a not permitted, lost"}},
		"a hostname that a permitted namespace also has": {[]string{"a.example.com", "a.example.com"}, func(s *gateway.Snapshot) {
			demandPermissions(s)
			permit(s, "team-b", "a.example.com")
		}, []string{"a.example.com team-b served"}},
		"listeners of the Gateway": {[]string{"ignored.example.com"}, func(s *gateway.Snapshot) {
			withGatewayListener(s, "*.example.com")
			withGatewayListener(s, "*.example.net")
			s.ListenerSets = nil
			attachToGateway(s, 0, "a.example.com", "b.example.com", "c.example.net")
			demandPermissions(s)
			permit(s, "team-a", "*")
			permit(s, "infra", "*.example.net b.example.com")
		}, []string{"a.example.com infra served not permitted", "b.example.com infra served", "c.example.net infra served"}},
		"listeners of the Gateway that need no permission": {[]string{"ignored.example.com"}, func(s *gateway.Snapshot) {
			withGatewayListener(s, "*.example.com")
			s.ListenerSets = nil
			attachToGateway(s, 0, "a.example.com")
		}, []string{"a.example.com infra served"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := tenantsSnapshot(test.hostnames...)
			s.Namespaces["infra"] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "infra"}}
			test.change(s)
			if diff := cmp.Diff(test.want, describeHostnames(gateway.Build(s, options).DNSHostnames())); diff != "" {
				t.Errorf("hostnames differ (-want +got):\n%s", diff)
			}
		})
	}
}

// The owner of a hostname is the object with the claiming listener.
func TestTheOwnerOfARecordHasTheClaimingListener(t *testing.T) {
	s := tenantsSnapshot("a.example.com", "c.example.com")
	withGatewayListener(s, "*.example.com")
	attachToGateway(s, 1, "b.example.com", "a.example.com")
	s.ListenerSets[1].CreationTimestamp.Reset()
	got := map[string]string{}
	created := map[string]time.Time{}
	for _, h := range gateway.Build(s, options).DNSHostnames() {
		got[h.Name], created[h.Name] = h.Owner.String(), h.Created
	}
	if diff := cmp.Diff(map[string]string{"a.example.com": "ListenerSet team-a/web", "b.example.com": "Gateway infra/shared"}, got); diff != "" {
		t.Errorf("owners differ (-want +got):\n%s", diff)
	}
	if !created["a.example.com"].Equal(time.Unix(1000, 0)) || !created["b.example.com"].Equal(s.Now) {
		t.Errorf("the owners were created at %v, want those of the ListenerSet, and now for the Gateway without a timestamp", created)
	}
}

// Exactly the hostnames in the routing table are served, in order, and a Gateway that is
// no longer accepted keeps its hostnames, as it does without any Secret and Service.
func TestServedHostnamesAreThoseOfTheTable(t *testing.T) {
	names := func(all []gateway.DNSHostname) (kept, served []string) {
		for _, h := range all {
			if !h.LacksPermission {
				kept = append(kept, h.Name)
			}
			if h.Served {
				served = append(served, h.Name)
			}
		}
		return kept, served
	}
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		result := gateway.Build(s, randomOptions)
		kept, served := names(result.DNSHostnames())
		if diff := cmp.Diff(result.Hostnames(), served); diff != "" {
			t.Errorf("served hostnames differ (-table +got):\n%s", diff)
		}
		if !slices.IsSorted(kept) {
			t.Errorf("the hostnames are not sorted: %v", kept)
		}
		s.Certificates, s.Services = nil, byname.Map[*corev1.Service]{}
		s.Gateway.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}}
		rejected, none := names(gateway.Build(s, randomOptions).DNSHostnames())
		if diff := cmp.Diff(kept, rejected); diff != "" || len(none) > 0 {
			t.Errorf("a Gateway that is not accepted serves %v, and its hostnames differ (-before +after):\n%s", none, diff)
		}
	})
}
