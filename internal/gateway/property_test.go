package gateway_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// clusters is how many random clusters each property is checked for. A failure states the
// seed: -run 'TestRequestsGetTheSpecifiedAnswer/seed=7$' repeats that cluster.
var clusters = flag.Uint64("clusters", 200, "random clusters for each property")

var randomOptions = gateway.Options{ControllerName: "tunnelgateway.dev/controller", ClusterDomain: "cluster.local", DataPlanes: routing.DataPlanes{v1alpha1.DataPlaneIngressRules: ingress.Capabilities()}}

func forEachCluster(t *testing.T, property func(t *testing.T, s *gateway.Snapshot, seed uint64)) {
	t.Helper()
	for seed := range *clusters {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { property(t, randomSnapshot(seed), seed) })
	}
}

// rulesConfiguration returns the tunnel's configuration with ingress rules for the table.
func rulesConfiguration(t *routing.Table) *provider.Configuration {
	return ingress.Render(v1alpha1.DataPlaneIngressRules, t, nil).Configuration()
}

func report(r *gateway.Result, s *gateway.Snapshot) gateway.Report {
	return r.Report(gateway.Outcome{Push: gateway.Push{State: gateway.PushSucceeded}, Tunnel: s.Tunnel})
}

// The order in a Snapshot's slices does not affect the Result.
func TestInputOrderDoesNotAffectTheResult(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		want := encodeResult(t, s)
		dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the test must be reproducible
		for range 2 {
			dice.Shuffle(len(s.ListenerSets), reflect.Swapper(s.ListenerSets))
			dice.Shuffle(len(s.HTTPRoutes), reflect.Swapper(s.HTTPRoutes))
			dice.Shuffle(len(s.Grants), reflect.Swapper(s.Grants))
			if got := encodeResult(t, s); !bytes.Equal(got, want) {
				t.Fatalf("the result depends on the order of the input (-want +got):\n%s", cmp.Diff(indent(want), indent(got)))
			}
		}
	})
}

// encodeResult returns everything that Build decides, as JSON.
func encodeResult(t *testing.T, s *gateway.Snapshot) []byte {
	t.Helper()
	result := gateway.Build(s, randomOptions)
	status := report(result, s)
	var owners []string
	for owner := range status.Owners {
		owners = append(owners, owner.String())
	}
	slices.Sort(owners)
	encoded, err := json.Marshal([]any{
		rulesConfiguration(result.Table), result.Listeners, status.Gateway, status.ListenerSets, status.Routes, owners,
	})
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func indent(encoded []byte) string {
	var indented bytes.Buffer
	_ = json.Indent(&indented, encoded, "", " ") // encoded is valid JSON
	return indented.String()
}

// Build and Report do not change the Snapshot.
func TestBuildDoesNotChangeItsInput(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		before := deepCopy(s)
		report(gateway.Build(s, randomOptions), s)
		if !reflect.DeepEqual(before, s) {
			t.Fatalf("Build changed its input (-before +after):\n%s", cmp.Diff(before, s))
		}
	})
}

func deepCopy(s *gateway.Snapshot) *gateway.Snapshot {
	c := *s
	c.Gateway, c.Class = s.Gateway.DeepCopy(), s.Class.DeepCopy()
	c.ClassConfiguration, c.GatewayConfiguration = s.ClassConfiguration.DeepCopy(), s.GatewayConfiguration.DeepCopy()
	c.ListenerSets, c.HTTPRoutes = slices.Clone(s.ListenerSets), slices.Clone(s.HTTPRoutes)
	for i, set := range c.ListenerSets {
		c.ListenerSets[i] = set.DeepCopy()
	}
	for i, route := range c.HTTPRoutes {
		c.HTTPRoutes[i] = route.DeepCopy()
	}
	c.Grants, c.Certificates = slices.Clone(s.Grants), maps.Clone(s.Certificates)
	for i, grant := range c.Grants {
		c.Grants[i] = grant.DeepCopy()
	}
	c.Namespaces = map[string]*corev1.Namespace{}
	for name, namespace := range s.Namespaces {
		c.Namespaces[name] = namespace.DeepCopy()
	}
	c.Services = byname.Map[*corev1.Service]{}
	for name, service := range s.Services.All() {
		c.Services.Set(name, service.DeepCopy())
	}
	return &c
}

// The connector accepts every configuration. The configuration also has no rules
// that the connector accepts but serves in an unexpected way.
func TestConfigurationIsValid(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		configuration := rulesConfiguration(gateway.Build(s, randomOptions).Table)
		if configuration == nil {
			return
		}
		if err := provider.Validate(*configuration); err != nil {
			t.Fatal(err)
		}
		compile(t, configuration)
		rules := configuration.Ingress
		if last := rules[len(rules)-1]; last.Hostname != "" || last.Path != "" {
			t.Errorf("the last rule is not a catch-all rule: %+v", last)
		}
		for i, rule := range rules {
			if strings.ToLower(rule.Hostname) != rule.Hostname || strings.ContainsAny(rule.Hostname, ": ") {
				t.Errorf("rule %d has the invalid hostname %q", i, rule.Hostname)
			}
			for _, earlier := range rules[:i] {
				if shadows(earlier, rule) {
					t.Errorf("rule %d receives no requests: %+v shadows %+v", i, earlier, rule)
				}
			}
		}
		wantTerminators(t, newOracle(s), rules)
	})
}

// shadows reports whether the earlier rule matches every request that the later rule
// matches: both have the same hostname and path, or the earlier rule has no path and its
// hostname covers the later hostname.
func shadows(earlier, later provider.IngressRule) bool {
	return earlier.Hostname == later.Hostname && earlier.Path == later.Path ||
		earlier.Path == "" && hostMatches(earlier.Hostname, later.Hostname)
}

func compile(t *testing.T, configuration *provider.Configuration) *simulator.Rules {
	t.Helper()
	encoded, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := simulator.Compile(encoded)
	if err != nil {
		t.Fatalf("the simulator rejects the configuration: %v\n%s", err, encoded)
	}
	return rules
}

// wantTerminators checks that a group ends with http_status:404 for its hostname
// exactly when a wider group exists.
func wantTerminators(t *testing.T, o *oracle, rules []provider.IngressRule) {
	t.Helper()
	groups := map[string]bool{}
	for _, c := range o.claims {
		if c.claims {
			groups[c.hostname()] = true
		}
	}
	for _, rule := range rules[:len(rules)-1] {
		if rule.Service == answerNotFound && (!groups[rule.Hostname] || rule.Path != "" || !hasWiderGroup(groups, rule.Hostname)) {
			t.Errorf("rule %+v is not needed, because no wider group exists", rule)
		}
	}
	for hostname := range groups {
		ends := slices.ContainsFunc(rules, func(r provider.IngressRule) bool { return r.Path == "" && r.Hostname == hostname })
		if !ends && hasWiderGroup(groups, hostname) {
			t.Errorf("the group of %q does not end with a 404 rule", hostname)
		}
	}
}

func hasWiderGroup(groups map[string]bool, hostname string) bool {
	for wider := range groups {
		if wider != hostname && hostMatches(wider, hostname) {
			return true
		}
	}
	return false
}

// Only one owner serves a hostname, on all ports.
func TestHostnameIsServedByOneOwner(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		owners := map[string]gateway.Owner{}
		for _, l := range gateway.Build(s, randomOptions).Listeners {
			if !l.Serves() {
				continue
			}
			if owner, served := owners[l.Hostname()]; served && owner != l.Owner {
				t.Errorf("hostname %q is served by %s and by %s", l.Hostname(), owner, l.Owner)
			}
			owners[l.Hostname()] = l.Owner
		}
	})
}

// The routing table, its virtual hosts, and the connector with the rendered rules answer
// random requests as the specification requires.
func TestRequestsGetTheSpecifiedAnswer(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		o, table := newOracle(s), gateway.Build(s, randomOptions).Table
		configuration := rulesConfiguration(table)
		if (configuration != nil) != o.accepted() {
			t.Fatalf("has a configuration: %t, but the Gateway is accepted: %t", configuration != nil, o.accepted())
		}
		if configuration == nil {
			return
		}
		rules, hosts := compile(t, configuration), table.Hosts()
		for _, request := range requestsFor(s, seed, false, 150) {
			index, got, _ := rules.Match(request.Host, request.Path)
			want := o.answer(request.Host, request.Path)
			if got != want {
				t.Errorf("request %q %q: rule %d answers with %s, want %s", request.Host, request.Path, index, got, want)
			}
			answer, _ := table.Answer(request)
			if got := serviceOf(answer); got != want {
				t.Errorf("request %q %q: the table answers with %s, want %s", request.Host, request.Path, got, want)
			}
			if got := answerOfHosts(hosts, request); got != answer {
				t.Errorf("request %q %q: the virtual hosts answer with %s, want %s", request.Host, request.Path, describeAnswer(got), describeAnswer(answer))
			}
		}
	})
}

// serviceOf returns the ingress rule's service for the entry.
func serviceOf(e *routing.Entry) string {
	switch {
	case e == nil:
		return answerNotFound
	case e.Action.Forward != nil:
		return e.Action.Forward.Backends[0].Backend.URL(randomOptions.ClusterDomain)
	default:
		return fmt.Sprintf("http_status:%d", e.Action.Status)
	}
}

// hostsAround returns hosts that match the hostnames in the snapshot, and similar
// hosts that do not match.
func hostsAround(s *gateway.Snapshot) []string {
	hosts := []string{"localhost", "com", "unknown.example.org"}
	add := func(hostname gatewayv1.Hostname) {
		host := strings.TrimPrefix(string(hostname), "*.")
		hosts = append(hosts, host, "x."+host, "y.x."+host, "z"+host)
	}
	for _, c := range newOracle(s).claims {
		if c.Hostname != nil {
			add(*c.Hostname)
		}
	}
	for _, route := range s.HTTPRoutes {
		for _, hostname := range route.Spec.Hostnames {
			add(hostname)
		}
	}
	for _, route := range s.GRPCRoutes {
		for _, hostname := range route.Spec.Hostnames {
			add(hostname)
		}
	}
	return hosts
}

// pathsAround returns decoded paths that match the routes, and similar paths that
// do not match.
func pathsAround(s *gateway.Snapshot) []string {
	paths := []string{"/", "/foo", "/foo/bar", "/unknown", "/foo\n", "/a/b", "/abc/1", "/a"}
	for _, route := range s.HTTPRoutes {
		for _, rule := range route.Spec.Rules {
			for _, match := range rule.Matches {
				if _, value := pathOf(match); strings.HasPrefix(value, "/") {
					decoded, _ := url.PathUnescape(value)
					short := strings.TrimSuffix(decoded, "/")
					paths = append(paths, value, decoded, short+"/", short+"/x", "/x"+short, decoded+"x")
				}
			}
		}
	}
	return paths
}

// Every listener has each condition once, with the specified reason and the generation of
// its object, and the correct attached route count.
func TestListenersHaveTheSpecifiedStatus(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		o := newOracle(s)
		r := report(gateway.Build(s, randomOptions), s)
		statuses := map[string]gatewayv1.ListenerStatus{}
		for _, status := range r.Gateway.Listeners {
			statuses["Gateway infra/shared "+string(status.Name)] = status
		}
		for _, set := range r.ListenerSets {
			for _, status := range set.Status.Listeners {
				statuses[fmt.Sprintf("ListenerSet %s %s", set.NamespacedName, status.Name)] = gatewayv1.ListenerStatus(status)
			}
		}
		listed := slices.DeleteFunc(slices.Clone(o.claims), func(c *claim) bool { return !c.allowed })
		if len(statuses) != len(listed) {
			t.Errorf("got %d listener statuses, want %d", len(statuses), len(listed))
		}
		for _, c := range listed {
			name := fmt.Sprintf("%s %s %s", c.owner.Kind, c.owner.NamespacedName, c.Name)
			status := statuses[name]
			wantConditions(t, name, status.Conditions, generationOf(s, c.owner), o.listenerConditions(c))
			if want := o.attachedRoutes(c); status.AttachedRoutes != want {
				t.Errorf("%s: got %d attached routes, want %d", name, status.AttachedRoutes, want)
			}
			wantNoOtherTenant(t, s, c, status.Conditions)
		}
	})
}

func generationOf(s *gateway.Snapshot, owner gateway.Owner) int64 {
	for _, set := range s.ListenerSets {
		if owner.Kind == gateway.KindListenerSet && owner.Namespace == set.Namespace && owner.Name == set.Name {
			return set.Generation
		}
	}
	return s.Gateway.Generation
}

// listenerConditions returns "<status> <reason>" for each condition by type, or only the
// status when the specification does not define the reason.
func (o *oracle) listenerConditions(c *claim) map[string]string {
	want := map[string]string{
		"Accepted": "True Accepted", "Conflicted": "False NoConflicts", "ResolvedRefs": "True ResolvedRefs", "Programmed": "True Programmed",
	}
	if !c.resolved() {
		want["ResolvedRefs"], want["Programmed"] = "False "+c.refsReason, "False Invalid"
	}
	if !o.accepted() {
		want["Programmed"] = "False"
	}
	if c.reason != "" {
		want["Accepted"], want["Programmed"] = "False "+c.reason, "False Invalid"
	}
	if c.conflicted() {
		want["Conflicted"] = "True " + c.reason
	}
	if c.conflicted() || slices.Contains([]string{"PortUnavailable", "UnsupportedValue", "HostnameNotPermitted"}, c.reason) {
		want["Programmed"] = "False " + c.reason
	}
	return want
}

// wantConditions compares the conditions with "<status> <reason>" or "<status>".
func wantConditions(t *testing.T, name string, conditions []metav1.Condition, generation int64, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, c := range conditions {
		if _, duplicate := got[c.Type]; duplicate {
			t.Errorf("%s has the condition %s twice", name, c.Type)
		}
		got[c.Type] = fmt.Sprintf("%s %s", c.Status, c.Reason)
		if !strings.Contains(want[c.Type], " ") {
			got[c.Type] = string(c.Status)
		}
		if c.ObservedGeneration != generation {
			t.Errorf("%s: condition %s has observedGeneration %d, want %d", name, c.Type, c.ObservedGeneration, generation)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: conditions differ (-want +got):\n%s", name, diff)
	}
}

// wantNoOtherTenant checks that the messages about a conflict never name another tenant's
// namespace or ListenerSet. ResolvedRefs messages name only objects that the listener
// itself refers to.
func wantNoOtherTenant(t *testing.T, s *gateway.Snapshot, c *claim, conditions []metav1.Condition) {
	t.Helper()
	if !c.conflicted() && c.reason != "PortUnavailable" && c.reason != "HostnameNotPermitted" {
		return
	}
	for _, condition := range conditions {
		if condition.Type == "ResolvedRefs" {
			continue
		}
		for _, set := range s.ListenerSets {
			for _, name := range []string{set.Namespace, set.Name} {
				visible := c.owner.String() + " " + s.Gateway.Namespace + "/" + s.Gateway.Name
				if !strings.Contains(visible, name) && strings.Contains(condition.Message, name) {
					t.Errorf("%s %s: the message reveals %s: %s", c.owner, c.Name, name, condition.Message)
				}
			}
		}
	}
}

// The Gateway and its ListenerSets have the specified conditions.
func TestGatewayAndListenerSetsHaveTheSpecifiedStatus(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		o := newOracle(s)
		r := report(gateway.Build(s, randomOptions), s)
		wantConditions(t, "Gateway", r.Gateway.Conditions, s.Gateway.Generation, o.gatewayConditions())
		if len(r.ListenerSets) != len(s.ListenerSets) {
			t.Errorf("got %d ListenerSet statuses, want %d", len(r.ListenerSets), len(s.ListenerSets))
		}
		var attached int32
		for _, set := range r.ListenerSets {
			owner := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: set.NamespacedName}
			want := o.setConditions(owner)
			wantConditions(t, owner.String(), set.Status.Conditions, generationOf(s, owner), want)
			if want["Accepted"] == "True Accepted" {
				attached++
			}
		}
		if got := r.Gateway.AttachedListenerSets; got == nil || *got != attached {
			t.Errorf("got attachedListenerSets %v, want %d", got, attached)
		}
	})
}

func (o *oracle) gatewayConditions() map[string]string {
	claims := o.claimsAt(gateway.KindGateway, o.snapshot.Gateway.Namespace, o.snapshot.Gateway.Name)
	switch {
	case len(o.snapshot.Gateway.Spec.Addresses) > 0:
		return map[string]string{"Accepted": "False UnsupportedAddress", "Programmed": "False Invalid"}
	case !o.accepted():
		return map[string]string{"Accepted": "False ListenersNotValid", "Programmed": "False Invalid"}
	case slices.ContainsFunc(claims, func(c *claim) bool { return !c.serves() }):
		return map[string]string{"Accepted": "True ListenersNotValid", "Programmed": "True Programmed"}
	default:
		return map[string]string{"Accepted": "True Accepted", "Programmed": "True Programmed"}
	}
}

func (o *oracle) setConditions(owner gateway.Owner) map[string]string {
	entries := o.claimsAt(owner.Kind, owner.Namespace, owner.Name)
	switch {
	case !entries[0].allowed:
		return map[string]string{"Accepted": "False NotAllowed", "Programmed": "False NotAllowed"}
	case !o.accepted():
		return map[string]string{"Accepted": "False ParentNotAccepted", "Programmed": "False ParentNotProgrammed"}
	case !slices.ContainsFunc(entries, (*claim).serves):
		return map[string]string{"Accepted": "False ListenersNotValid", "Programmed": "False ListenersNotValid"}
	default:
		return map[string]string{"Accepted": "True Accepted", "Programmed": "True Programmed"}
	}
}

// Each parentRef to a managed parent has its own entry with the fields from the spec, and
// always has the conditions Accepted and ResolvedRefs.
func TestRoutesHaveTheSpecifiedStatus(t *testing.T) {
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		o := newOracle(s)
		statuses := map[types.NamespacedName]*gateway.RouteStatus{}
		for _, status := range report(gateway.Build(s, randomOptions), s).Routes {
			statuses[status.NamespacedName] = status
		}
		for _, route := range s.HTTPRoutes {
			var managed []gatewayv1.ParentReference
			for _, ref := range route.Spec.ParentRefs {
				if o.isManaged(ref) {
					managed = append(managed, ref)
				}
			}
			var refs []gatewayv1.ParentReference
			for _, parent := range statuses[types.NamespacedName{Namespace: route.Namespace, Name: route.Name}].Parents {
				refs = append(refs, parent.ParentRef)
				name := fmt.Sprintf("%s/%s at %s", route.Namespace, route.Name, describeRef(parent.ParentRef))
				wantConditions(t, name, parent.Conditions, route.Generation, o.parentConditions(parent.ParentRef, specHTTPRoute(route)))
				wantNoOtherNamespace(t, route.Namespace, parent.Conditions)
			}
			if diff := cmp.Diff(managed, refs); diff != "" {
				t.Errorf("%s/%s: entries differ (-want +got):\n%s", route.Namespace, route.Name, diff)
			}
		}
	})
}

// wantNoOtherNamespace checks that the messages about permissions for hostnames never
// name another namespace.
func wantNoOtherNamespace(t *testing.T, namespace string, conditions []metav1.Condition) {
	t.Helper()
	for _, c := range conditions {
		if c.Reason != "HostnameNotPermitted" && (c.Type != "Accepted" || c.Status != metav1.ConditionTrue) {
			continue
		}
		for _, other := range randomNamespaces {
			if !strings.Contains(namespace, other) && strings.Contains(c.Message, other) {
				t.Errorf("a message to namespace %s reveals %s: %s", namespace, other, c.Message)
			}
		}
	}
}

func (o *oracle) isManaged(ref gatewayv1.ParentReference) bool {
	return *ref.Group == gatewayv1.GroupName && (*ref.Kind == gateway.KindListenerSet || string(ref.Name) == o.snapshot.Gateway.Name)
}

// isAdmitted reports whether a listener admits the route through any of its parentRefs,
// or would without a route of another kind.
func (o *oracle) isAdmitted(route *specRoute) bool {
	return slices.ContainsFunc(route.parentRefs, func(ref gatewayv1.ParentReference) bool {
		reason := o.routeReason(ref, route)
		return reason == "Accepted" || reason == "RouteKindConflict" || reason == "UnsupportedValue" && o.hasSupportedHostname(route)
	})
}

func (o *oracle) parentConditions(ref gatewayv1.ParentReference, route *specRoute) map[string]string {
	want := map[string]string{"Accepted": "False " + o.routeReason(ref, route), "ResolvedRefs": "True ResolvedRefs"}
	for _, rule := range route.rules {
		for _, ref := range rule.BackendRefs {
			if _, ok := o.backend(ref, route); !ok && o.isAdmitted(route) {
				want["ResolvedRefs"] = "False"
			}
		}
	}
	if want["Accepted"] == "False Accepted" {
		want["Accepted"] = "True Accepted"
		admitting := slices.DeleteFunc(o.selected(ref, route.Namespace), func(c *claim) bool { return !o.admits(c, route) })
		if slices.ContainsFunc(route.rules, func(rule specRule) bool { return !o.isRuleSupported(rule) || !o.mayRedirect(rule, admitting) }) {
			want["PartiallyInvalid"] = "True UnsupportedValue"
		}
	}
	return want
}
