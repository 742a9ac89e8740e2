package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// TestEachHostRequiresWhatTheFirstLevelDemands compares what random Gateways require of each
// host with a second implementation of the rules: it compares the host with every listener,
// entry and AccessPolicy, and knows no hostnames of a table. Without applications, a host
// with a managed demand is closed. With them, the application is for the host or for the
// wildcard one level above it, and backends of other namespaces never see its tokens.
func TestEachHostRequiresWhatTheFirstLevelDemands(t *testing.T) {
	managed, byHand := 0, 0
	for seed := range uint64(400) {
		d := randomDemands{rand.New(rand.NewPCG(seed, 41))} //nolint:gosec // the test must be reproducible
		s := d.snapshot()
		result := gateway.Build(s, options)
		verdicts := access.Verdicts{}
		for _, demand := range result.AccessDemands() {
			verdicts[demand.Hostname] = access.Verdict{Reason: conditions.ReasonProtected}
		}
		withApplications := *s
		withApplications.Access = knownApplications(result, verdicts)
		protected := gateway.Build(&withApplications, options)
		for _, host := range demandedHosts {
			want, about := demandOf(s, result, host), fmt.Sprintf("seed %d: %s", seed, host)
			wantWithoutApplications(t, about, result, host, want)
			if want.managed {
				managed++
				wantApplication(t, about, protected, host, want)
			} else if want.byHand != "" {
				byHand++
			}
		}
	}
	if managed < 300 || byHand < 300 {
		t.Errorf("the cases have only %d hosts with managed demands and %d with tags made by hand", managed, byHand)
	}
}

// wantWithoutApplications checks what a host requires while no application exists.
func wantWithoutApplications(t *testing.T, about string, r *gateway.Result, host string, want demandOfHost) {
	t.Helper()
	switch got := r.Table.Access.Of(host); {
	case want.managed && !got.IsClosed():
		t.Fatalf("%s requires %+v without applications, want that it is closed", about, got)
	case want.byHand != "" && (got == nil || !slices.Equal(got.AUDTags, []string{want.byHand})):
		t.Fatalf("%s requires %+v, want the tag %s", about, got, want.byHand)
	case !want.managed && want.byHand == "" && want.claimed && got != nil:
		t.Fatalf("%s requires %+v, want nothing", about, got)
	}
}

// wantApplication checks which tokens a host with a managed demand requires while each
// permitted application exists.
func wantApplication(t *testing.T, about string, r *gateway.Result, host string, want demandOfHost) {
	t.Helper()
	got := r.Table.Access.Of(host)
	if got.IsClosed() {
		if isValid := r.Demanded.Demands[host].Invalid == nil; want.permitted && isValid && host == want.listener {
			t.Fatalf("%s is closed although the namespace may protect it", about)
		}
		return
	}
	if got == nil || len(got.AUDTags) != 1 {
		t.Fatalf("%s requires %+v, want the tag of one application", about, got)
	}
	wantTokensOf(t, about, r, strings.TrimPrefix(got.AUDTags[0], "aud-of-"), host, want)
}

// wantTokensOf checks that the host may require tokens for the application.
func wantTokensOf(t *testing.T, about string, r *gateway.Result, application, host string, want demandOfHost) {
	t.Helper()
	demands := r.AccessDemands()
	i := slices.IndexFunc(demands, func(d access.Demand) bool { return d.Hostname == application })
	_, parent, _ := strings.Cut(host, ".")
	isDeeper := application != host && application != "*."+parent
	switch {
	case i < 0 || !strings.HasSuffix(demands[i].Owner, "/"+want.namespace):
		t.Fatalf("%s requires a token for %s, which is not for listeners of namespace %s: %+v", about, application, want.namespace, demands)
	case demands[i].Level != want.level:
		t.Fatalf("%s requires a token for %s of level %s, want %s", about, application, demands[i].Level, want.level)
	case isDeeper && r.Demanded.Demands[host].Hostname != "":
		t.Fatalf("%s is a hostname of the table and requires a token for %s, which covers one level", about, application)
	}
}

// demandOfHost is what the rules demand for a host.
type demandOfHost struct {
	claimed, managed bool
	permitted        bool
	byHand           string // the AUD tag
	level            access.Level
	// listener is the hostname of the listener that claims the host, and namespace its
	// namespace.
	listener, namespace string
}

// demandOf returns what the page on Access demands for the host.
func demandOf(s *gateway.Snapshot, result *gateway.Result, host string) demandOfHost {
	claim := claimOf(result, host)
	if claim == nil {
		return demandOfHost{}
	}
	d := demandOfHost{claimed: true, listener: claim.Hostname(), namespace: claim.Owner.Namespace}
	permission := s.Namespaces[d.namespace].Annotations["tunnelgateway.dev/hostnames"]
	d.permitted = specificityFor(permission, host) >= 0 && permission != ""
	for level, entries := range [][]v1alpha1.ListenerConfiguration{
		s.ClassConfiguration.Spec.ListenerConfigurations, s.GatewayConfiguration.Spec.ListenerConfigurations,
	} {
		if decisive := decisiveAccess(entries, host); decisive != nil && decisive.Required {
			d.level, d.managed = access.Level(level), len(decisive.Policies) > 0
			if !d.managed {
				d.byHand = string(decisive.AUDTags[0])
			}
			return d
		}
	}
	d.level = access.LevelPolicy
	d.managed = slices.ContainsFunc(s.AccessPolicies, func(p *v1alpha1.AccessPolicy) bool { return appliesTo(p, result, claim) })
	return d
}

// appliesTo reports whether the AccessPolicy is for the listener. A section that does not exist
// stands for all listeners of the target.
func appliesTo(policy *v1alpha1.AccessPolicy, r *gateway.Result, l *gateway.Listener) bool {
	ref := policy.Spec.TargetRefs[0]
	isOwner := policy.Namespace == l.Owner.Namespace && string(ref.Kind) == l.Owner.Kind && string(ref.Name) == l.Owner.Name
	return isOwner && (ref.SectionName == nil || !hasListener(r, l.Owner, *ref.SectionName) || sectionName(l.Hostname()) == string(*ref.SectionName))
}

// claimOf returns the listener that claims the host, or nil.
func claimOf(r *gateway.Result, host string) *gateway.Listener {
	var claim *gateway.Listener
	best := -1
	for _, l := range r.Listeners {
		if specificity := specificityFor(l.Hostname(), host); l.Rejected == nil && specificity > best {
			best, claim = specificity, l
		}
	}
	return claim
}

// decisiveAccess returns what the most specific entry for the host says about Access, or nil.
func decisiveAccess(entries []v1alpha1.ListenerConfiguration, host string) *v1alpha1.Access {
	var decisive *v1alpha1.Access
	best := -1
	for i := range entries {
		if specificity := specificityFor(entries[i].Hostname, host); specificity > best {
			best, decisive = specificity, entries[i].Access
		}
	}
	return decisive
}

func hasListener(r *gateway.Result, owner gateway.Owner, section gatewayv1.SectionName) bool {
	return slices.ContainsFunc(r.Listeners, func(l *gateway.Listener) bool { return l.Owner == owner && l.Spec.Name == section })
}

// specificityFor returns how specific a hostname is that covers the host, or -1.
func specificityFor(hostname, host string) int {
	switch suffix, isWildcard := strings.CutPrefix(hostname, "*"); {
	case hostname == "":
		return 0
	case hostname == host:
		return 100
	case isWildcard && strings.HasSuffix(host, suffix):
		return strings.Count(hostname, ".")
	default:
		return -1
	}
}

var (
	demandedHostnames = []string{"", "*.example.com", "a.example.com", "b.example.com", "*.a.example.com", "x.a.example.com", "y.x.a.example.com", "c.example.org"}
	demandedHosts     = []string{"a.example.com", "b.example.com", "z.example.com", "x.a.example.com", "y.a.example.com", "y.x.a.example.com", "c.example.org", "d.example.org"}
)

func sectionName(hostname string) string {
	return strings.NewReplacer("*", "wild", ".", "-").Replace("h." + hostname)
}

type randomDemands struct{ *rand.Rand }

// some returns some of the hostnames.
func (d randomDemands) some(odds int) []string {
	return slices.DeleteFunc(slices.Clone(demandedHostnames), func(string) bool { return d.IntN(odds) > 0 })
}

// snapshot returns a Gateway with two ListenerSets, routes, entries and AccessPolicies.
func (d randomDemands) snapshot() *gateway.Snapshot {
	s := accessSnapshot()
	s.DataPlane = []v1alpha1.DataPlane{v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy}[d.IntN(2)]
	s.Gateway.Spec.Listeners = []gatewayv1.Listener{httpListener("fixed", "fixed.example.org", 80)} // so that the Gateway is accepted
	for _, hostname := range d.some(3) {
		s.Gateway.Spec.Listeners = append(s.Gateway.Spec.Listeners, httpListener(sectionName(hostname), hostname, 80))
	}
	s.Gateway.Spec.Infrastructure = &gatewayv1.GatewayInfrastructure{ParametersRef: &gatewayv1.LocalParametersReference{
		Group: v1alpha1.GroupName, Kind: "TunnelConfiguration", Name: "own",
	}}
	s.GatewayConfiguration = &v1alpha1.TunnelConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "own"}}
	s.ClassConfiguration.Spec.ListenerConfigurations, s.GatewayConfiguration.Spec.ListenerConfigurations = d.entries("class"), d.entries("gateway")
	s.ListenerSets, s.HTTPRoutes = nil, nil
	d.addRoute(s, "infra", gatewayv1.ParentReference{Name: "shared"})
	for _, team := range []string{"team", "other"} {
		s.Namespaces[team] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}
		permit(s, team, "*.example.com")
		set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "set"}}
		for _, hostname := range d.some(3) {
			set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry(httpListener(sectionName(hostname), hostname, 80)))
		}
		s.ListenerSets = append(s.ListenerSets, set)
		d.addRoute(s, team, gatewayv1.ParentReference{Kind: new(gatewayv1.Kind(gateway.KindListenerSet)), Name: "set"})
		d.addPolicies(s, team, gateway.KindListenerSet, "set")
	}
	d.addPolicies(s, "infra", gateway.KindGateway, "shared")
	return s
}

func (d randomDemands) entries(level string) []v1alpha1.ListenerConfiguration {
	var entries []v1alpha1.ListenerConfiguration
	for _, hostname := range d.some(4) {
		block := v1alpha1.Access{Required: true, Policies: []v1alpha1.PolicyName{"employees"}}
		switch d.IntN(3) {
		case 0:
			block = v1alpha1.Access{}
		case 1:
			block = v1alpha1.Access{Required: true, TeamName: new("acme"), AUDTags: []v1alpha1.AUDTag{v1alpha1.AUDTag(level + "-" + sectionName(hostname))}}
		}
		entries = append(entries, accessEntry(hostname, block))
	}
	return entries
}

func (d randomDemands) addRoute(s *gateway.Snapshot, namespace string, parent gatewayv1.ParentReference) {
	route := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "route"}}
	route.Spec.ParentRefs = []gatewayv1.ParentReference{parent}
	for _, hostname := range d.some(3) {
		if hostname != "" {
			route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(hostname))
		}
	}
	s.HTTPRoutes = append(s.HTTPRoutes, route)
}

func (d randomDemands) addPolicies(s *gateway.Snapshot, namespace, kind, name string) {
	for i := range d.IntN(3) {
		section := []string{"", "missing", sectionName("*.example.com"), sectionName("a.example.com")}[d.IntN(4)]
		s.AccessPolicies = append(s.AccessPolicies, accessPolicy(namespace, fmt.Sprintf("p%d", i), accessTarget(kind, name, section)))
	}
}
