package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	permissions "github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// accessLimitSnapshot returns a Gateway with Envoy, and for each hostname a route. The old
// hostnames are protected by an entry of the GatewayClass, the young ones by an AccessPolicy,
// and the open ones are exempt below the entry of the old ones.
func accessLimitSnapshot(old, young, open int) *gateway.Snapshot {
	s := routesSnapshot()
	setParametersRefs(s)
	s.Gateway.Spec.Infrastructure = nil
	s.Gateway.Spec.Listeners = []gatewayv1.Listener{httpListener("old", "*.old.example.com", 80), httpListener("young", "*.young.example.com", 80)}
	s.Namespaces["platform"].Annotations = map[string]string{permissions.Annotation: "*.example.com"}
	entry := func(hostname string, a *v1alpha1.Access) v1alpha1.ListenerConfiguration {
		return v1alpha1.ListenerConfiguration{ProtocolPort: v1alpha1.EveryPort, Hostname: hostname, Access: a}
	}
	spec := v1alpha1.TunnelConfigurationSpec{
		DataPlane: new(v1alpha1.DataPlaneEnvoy),
		Hostnames: &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)},
		Access: &v1alpha1.AccessApplications{
			Applications: new(v1alpha1.ApplicationsManaged), TeamName: new("acme"), Policies: []v1alpha1.CataloguePolicy{{Name: "staff", ID: "1"}},
		},
		ListenerConfigurations: []v1alpha1.ListenerConfiguration{entry("*.old.example.com", &v1alpha1.Access{Required: true, Policies: []v1alpha1.PolicyName{"staff"}})},
	}
	var all []string
	for i := range open {
		hostname := fmt.Sprintf("open%d.a.old.example.com", i)
		all = append(all, hostname)
		spec.ListenerConfigurations = append(spec.ListenerConfigurations, entry(hostname, &v1alpha1.Access{}))
	}
	for i := range old {
		all = append(all, fmt.Sprintf("h%d.a.old.example.com", i))
	}
	for i := range young {
		all = append(all, fmt.Sprintf("h%d.a.young.example.com", i))
	}
	for i, chunk := range slices.Collect(slices.Chunk(all, 16)) {
		route := httpRoute(routeMeta(fmt.Sprint("route", i), 0))
		for _, hostname := range chunk {
			route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(hostname))
		}
		s.HTTPRoutes = append(s.HTTPRoutes, route)
	}
	s.ClassConfiguration = configuration("platform", "defaults", spec)
	s.ClassConfiguration.CreationTimestamp = metav1.NewTime(dayOne.Add(-time.Hour))
	s.AccessPolicies = []*v1alpha1.AccessPolicy{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "young", CreationTimestamp: metav1.NewTime(dayOne.Add(-time.Minute))},
		Spec: v1alpha1.AccessPolicySpec{
			TargetRefs: []gatewayv1.LocalPolicyTargetReferenceWithSectionName{{
				LocalPolicyTargetReference: gatewayv1.LocalPolicyTargetReference{Group: gatewayv1.GroupName, Kind: "Gateway", Name: "shared"},
				SectionName:                new(gatewayv1.SectionName("young")),
			}},
			Policies: []v1alpha1.PolicyName{"staff"},
		},
	}}
	return s
}

// protect makes an application for each demand that is not invalid.
func protect(s *gateway.Snapshot, demands map[string]access.Demand) {
	s.Access = access.Known{Uptime: time.Hour, Read: true, InEffectKnown: true, Verdicts: access.Verdicts{}}
	for _, d := range demands {
		if d.Invalid != nil {
			continue
		}
		s.Access.Verdicts[d.Hostname] = access.Verdict{Reason: conditions.ReasonProtected, Application: &access.Application{
			Hostname: d.Hostname, TeamName: "acme", AUDTag: "aud-" + d.Hostname, Decider: d.DeciderKey(),
			Last: provider.Application{
				Domains: []string{d.Hostname}, Policies: []provider.AccessPolicyID{"1"}, SessionDuration: d.SessionDuration,
				BindingCookie: strings.HasPrefix(d.Hostname, "*"),
			},
		}}
	}
}

// Protected hostnames whose demand has gone do not take the place of others while they wait
// for openingDelay: they are closed.
func TestEndingProtectionDoesNotExceedTheLimitOfRulesForAccess(t *testing.T) {
	o := envoyOptions()
	o.ControllerNamespace = "platform"
	s := accessLimitSnapshot(0, 900, 0)
	protect(s, gateway.Build(s, o).Demanded.Demands)
	before := gateway.Build(s, o)
	s.Access.Exposure = s.Access.Exposure.Next(before.Demanded, before.AccessStates, true, s.Access.Uptime)
	next := accessLimitSnapshot(900, 900, 0)
	next.AccessPolicies, next.Access = nil, s.Access
	known := s.Access
	protect(next, gateway.Build(next, o).Demanded.Demands)
	next.Access.Exposure = known.Exposure
	result := gateway.Build(next, o)
	if rules := len(ingress.EnvoyConfiguration(result.Table).Ingress); rules > routing.MaxAccessRules {
		t.Errorf("the configuration has %d rules", rules)
	}
	for hostname, want := range map[string]access.Status{"h1.a.old.example.com": access.Protected, "h1.a.young.example.com": access.Closed} {
		if got := result.AccessStates[hostname].Status; got != want {
			t.Errorf("%s is %s, want %s", hostname, got, want)
		}
	}
}

// closedByLimit counts the hostnames that are closed because of the limit, by their domain.
func closedByLimit(t *testing.T, states map[string]access.State) map[string]int {
	t.Helper()
	closed := map[string]int{}
	for hostname, state := range states {
		switch {
		case state.Reason == conditions.ReasonLimitExceeded:
			closed[hostname[strings.LastIndex(strings.TrimSuffix(hostname, ".example.com"), ".")+1:]]++
		case state.Status != access.Protected && !strings.HasPrefix(hostname, "open"):
			t.Fatalf("%s is %+v", hostname, state)
		}
	}
	return closed
}

// Above the limit of rules with Envoy, the youngest demands are closed, with their rules. The
// older ones stay protected, and the open hostnames open.
func TestYoungestDemandsExceedTheLimitOfRulesForAccess(t *testing.T) {
	o := envoyOptions()
	o.ControllerNamespace = "platform"
	for name, c := range map[string]struct {
		old, young, open int
		closed           func(closedOld, closedYoung int) bool
	}{
		"within the limit":              {400, 597, 0, func(old, young int) bool { return old+young == 0 }},
		"young demands":                 {600, 600, 0, func(old, young int) bool { return old == 0 && young == 203 }},
		"all young demands, and others": {1100, 50, 0, func(old, young int) bool { return young == 51 && old == 102 }},
		"open hostnames":                {600, 300, 200, func(old, young int) bool { return old == 0 && young == 103 }},
	} {
		t.Run(name, func(t *testing.T) {
			s := accessLimitSnapshot(c.old, c.young, c.open)
			protect(s, gateway.Build(s, o).Demanded.Demands)
			result := gateway.Build(s, o)
			if result.Rejected != nil {
				t.Fatalf("the Gateway is rejected: %+v", result.Rejected)
			}
			closed := closedByLimit(t, result.AccessStates)
			if !c.closed(closed["old.example.com"], closed["young.example.com"]) {
				t.Errorf("too many or too few hostnames are closed: %v", closed)
			}
			if rules := len(ingress.EnvoyConfiguration(result.Table).Ingress); rules > routing.MaxAccessRules || rules < routing.MaxAccessRules-1 && len(closed) > 0 {
				t.Errorf("the configuration has %d rules", rules)
			}
			for i := range c.open {
				hostname := fmt.Sprintf("open%d.a.old.example.com", i)
				if required := result.Table.Access.Of(hostname); required != nil {
					t.Fatalf("%s requires %+v", hostname, required)
				}
			}
		})
	}
}

// closedDemands counts the demands that are closed because of the limit, by their domain.
func closedDemands(result *gateway.Result) map[string]int {
	closed := map[string]int{}
	for hostname, demand := range result.Demanded.Demands {
		if demand.Invalid != nil {
			closed[hostname[strings.LastIndex(strings.TrimSuffix(hostname, ".example.com"), ".")+1:]]++
		}
	}
	return closed
}

// A tenant whose hostnames an old entry of the GatewayClass protects closes no hostname of
// others, however many it has.
func TestHostnamesBelowAnEntryOfTheClassCloseNoOthers(t *testing.T) {
	o := envoyOptions()
	o.ControllerNamespace = "platform"
	s := accessLimitSnapshot(1100, 10, 0)
	s.Namespaces["team-a"] = s.Namespaces["platform"].DeepCopy()
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "set"}}
	set.Spec.ParentRef.Name, set.Spec.ParentRef.Namespace = "shared", new(gatewayv1.Namespace("platform"))
	set.Spec.Listeners = []gatewayv1.ListenerEntry{gatewayv1.ListenerEntry(s.Gateway.Spec.Listeners[0])}
	s.ListenerSets, s.Gateway.Spec.Listeners = []*gatewayv1.ListenerSet{set}, s.Gateway.Spec.Listeners[1:]
	s.Gateway.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: new(gatewayv1.NamespacesFromAll)}}
	for _, route := range slices.Clone(s.HTTPRoutes) {
		tenants := route.DeepCopy()
		tenants.Namespace, tenants.Spec.ParentRefs[0].Kind, tenants.Spec.ParentRefs[0].Name = "team-a", new(gatewayv1.Kind("ListenerSet")), "set"
		s.HTTPRoutes = append(s.HTTPRoutes, tenants)
	}
	if closed := closedDemands(gateway.Build(s, o)); len(closed) != 1 || closed["old.example.com"] == 0 {
		t.Errorf("the closed hostnames are %v, want only those of the tenant", closed)
	}
}

// The demands of a namespace beyond its number of applications close no hostname of others,
// even if they are older.
func TestDemandsBeyondTheLimitOfANamespaceCloseNoOthers(t *testing.T) {
	o := envoyOptions()
	o.ControllerNamespace = "platform"
	s := accessLimitSnapshot(10, 1100, 0)
	s.ClassConfiguration.CreationTimestamp = metav1.NewTime(dayOne)
	s.AccessPolicies[0].CreationTimestamp = metav1.NewTime(dayOne.Add(-time.Hour))
	closed := closedDemands(gateway.Build(s, o))
	if len(closed) != 1 || closed["young.example.com"] == 0 {
		t.Errorf("the closed hostnames are %v, want only those of the large namespace", closed)
	}
}

// With ingress rules, the rule of a closed hostname without a route counts like a 404 rule.
func TestClosedHostnamesWithoutRoutesCount(t *testing.T) {
	s := accessLimitSnapshot(0, 0, 0)
	s.ClassConfiguration.Spec.DataPlane = nil
	s.ClassConfiguration.Spec.ListenerConfigurations[0].Hostname = "*.example.com"
	s.Gateway.Spec.Listeners = []gatewayv1.Listener{httpListener("a", "a.example.com", 80), httpListener("b", "b.example.com", 80)}
	o := options
	o.ControllerNamespace = "platform"
	result := gateway.Build(s, o)
	if result.Rejected != nil {
		t.Fatalf("the Gateway is rejected: %+v", result.Rejected)
	}
	rules := ingress.Rules(result.Table)
	if got, want := result.Usage.ByLimit()[0].Used, len(rules)-1; got != want || want != 2 { // the last rule belongs to no namespace
		t.Errorf("%d rules count, want %d: %+v", got, want, rules)
	}
}
