package gateway_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// forEachConfiguredCluster checks a property for random clusters with random
// settings of the class and of the Gateway.
func forEachConfiguredCluster(t *testing.T, property func(t *testing.T, s *gateway.Snapshot, seed uint64)) {
	t.Helper()
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 3)), snapshot: s} //nolint:gosec // the test must be reproducible
		setParametersRefs(s)
		class := d.settings()
		if s.ClassConfiguration != nil {
			class.Hostnames = s.ClassConfiguration.Spec.Hostnames
		}
		s.ClassConfiguration = configuration("platform", "defaults", class)
		s.GatewayConfiguration = configuration("infra", "own", d.settings())
		if d.chance(50) {
			s.ClassConfiguration.Spec.MergingMode = new(v1alpha1.MergingModePreferGateway)
		}
		property(t, s, seed)
	})
}

func (d *randomizer) settings() v1alpha1.TunnelConfigurationSpec {
	var spec v1alpha1.TunnelConfigurationSpec
	if d.chance(50) {
		spec.OriginRequest = d.originRequest()
	}
	for _, port := range []string{"HTTP:80", "HTTPS:443", "HTTP:8080", "HTTP:443", "HTTPS:80"} {
		for _, hostname := range randomHostnames {
			if !d.chance(cmp.Or(map[string]int{"": 40}[hostname], 20)) {
				continue
			}
			entry := v1alpha1.ListenerConfiguration{ProtocolPort: port, Hostname: hostname}
			if d.chance(60) {
				entry.OriginRequest = d.originRequest()
			}
			if d.chance(60) {
				entry.Access = d.access()
			}
			spec.ListenerConfigurations = append(spec.ListenerConfigurations, entry)
		}
	}
	return spec
}

func (d *randomizer) originRequest() *v1alpha1.OriginRequest {
	o := &v1alpha1.OriginRequest{}
	if d.chance(70) {
		o.ConnectTimeout = new(v1alpha1.Duration(fmt.Sprintf("%ds", 1+d.IntN(99))))
	}
	if d.chance(50) {
		o.MatchSNIToHost = new(d.chance(50))
	} else {
		o.HTTP2Origin = new(d.chance(50))
	}
	return o
}

// access returns random access settings. Most have the same team, and there are few
// tags, so that some settings contradict each other.
func (d *randomizer) access() *v1alpha1.Access {
	tags := []v1alpha1.AUDTag{"a", "b", "c"}
	d.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
	return &v1alpha1.Access{
		Required: d.chance(60), TeamName: new(pick(d, "one", "one", "one", "two")), AUDTags: tags[:pick(d, 1, 2, 3, 3)],
	}
}

// The general properties also hold for clusters with settings.
func TestSettingsPreserveTheProperties(t *testing.T) {
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		before, want := deepCopy(s), encodeResult(t, s)
		if !reflect.DeepEqual(before, s) {
			t.Fatalf("Build changed its input (-before +after):\n%s", gocmp.Diff(before, s))
		}
		dice := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // the test must be reproducible
		dice.Shuffle(len(s.ListenerSets), reflect.Swapper(s.ListenerSets))
		dice.Shuffle(len(s.HTTPRoutes), reflect.Swapper(s.HTTPRoutes))
		for _, c := range []*v1alpha1.TunnelConfiguration{s.ClassConfiguration, s.GatewayConfiguration} {
			dice.Shuffle(len(c.Spec.ListenerConfigurations), reflect.Swapper(c.Spec.ListenerConfigurations))
		}
		if got := encodeResult(t, s); !bytes.Equal(got, want) {
			t.Fatalf("the result depends on the order of the input (-want +got):\n%s", gocmp.Diff(indent(want), indent(got)))
		}
		if c := ingress.Configuration(gateway.Build(s, randomOptions).Table); c != nil {
			if err := provider.Validate(*c); err != nil {
				t.Fatal(err)
			}
			compile(t, c)
		}
	})
}

// listenerEntries returns the entries of listenerConfigurations for a listener in
// order of precedence: the preferred level before the other level, and within a
// level, the entry with a hostname before the entry without.
func (o *oracle) listenerEntries(c *claim) []v1alpha1.ListenerConfiguration {
	levels := []*v1alpha1.TunnelConfiguration{o.snapshot.ClassConfiguration, o.snapshot.GatewayConfiguration}
	if levels[0].Spec.MergingMode != nil {
		slices.Reverse(levels)
	}
	var entries []v1alpha1.ListenerConfiguration
	for _, level := range levels {
		for _, hostname := range slices.Compact([]string{c.hostname(), ""}) {
			for _, entry := range level.Spec.ListenerConfigurations {
				if entry.ProtocolPort == fmt.Sprintf("%s:%d", c.Protocol, c.Port) && entry.Hostname == hostname {
					entries = append(entries, entry)
				}
			}
		}
	}
	return entries
}

// requiredAccess returns the access that the hostname requires. Without tags, no
// token is valid.
func (o *oracle) requiredAccess(hostname string) (team string, tags []string, required bool) {
	for _, c := range o.claims {
		if !c.claims || c.hostname() != hostname {
			continue
		}
		i := slices.IndexFunc(o.listenerEntries(c), func(entry v1alpha1.ListenerConfiguration) bool { return entry.Access != nil })
		if i < 0 || !o.listenerEntries(c)[i].Access.Required {
			continue
		}
		access := o.listenerEntries(c)[i].Access
		var valid []string
		for _, tag := range access.AUDTags {
			if !required || slices.Contains(tags, string(tag)) && team == *access.TeamName {
				valid = append(valid, string(tag))
			}
		}
		slices.Sort(valid)
		team, tags, required = *access.TeamName, valid, true
	}
	return team, tags, required
}

// A request reaches a backend only with the access that all listeners of the hostname
// require. A hostname whose listeners require no access has none.
func TestEveryRequestRequiresAccessOfAllListeners(t *testing.T) {
	protected, contradictory := 0, 0
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		o := newOracle(s)
		configuration := ingress.Configuration(gateway.Build(s, randomOptions).Table)
		if configuration == nil {
			return
		}
		rules := compile(t, configuration)
		dice := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // the test must be reproducible
		hosts, paths := hostsAround(s), pathsAround(s)
		for range 150 {
			host, path := hosts[dice.IntN(len(hosts))], paths[dice.IntN(len(paths))]
			index, service, _ := rules.Match(host, path)
			if hostname, found := o.groupOf(host); found && service != answerNotFound {
				protected += o.wantAccess(t, hostname, configuration.Ingress[index])
			}
		}
		contradictory += o.contradictions()
	})
	if protected == 0 || contradictory == 0 {
		t.Errorf("the clusters have %d requests that require access and %d listeners with contradictory access, want both", protected, contradictory)
	}
}

// wantAccess checks the access of a rule. It returns 1 when the hostname requires
// access, and 0 otherwise.
func (o *oracle) wantAccess(t *testing.T, hostname string, rule provider.IngressRule) int {
	t.Helper()
	team, tags, required := o.requiredAccess(hostname)
	got := rule.OriginRequest.Access
	if !required {
		if got != nil {
			t.Errorf("hostname %q requires no access, but rule %+v has access %+v", hostname, rule, got)
		}
		return 0
	}
	if got != nil {
		slices.Sort(got.AUDTag)
	}
	if diff := gocmp.Diff(&provider.Access{Required: true, TeamName: team, AUDTag: tags}, got); diff != "" || len(tags) == 0 {
		t.Errorf("hostname %q, rule %+v: access differs (-want +got):\n%s", hostname, rule, diff)
	}
	return 1
}

// contradictions returns the number of listeners whose hostname requires access for
// which no token is valid.
func (o *oracle) contradictions() (n int) {
	for _, c := range o.claims {
		if _, tags, required := o.requiredAccess(c.hostname()); c.claims && required && len(tags) == 0 {
			n++
		}
	}
	return n
}

// A rule has the settings of the listeners to which its route is attached: HTTPS
// before HTTP, then the lower port.
func TestRouteTakesOverridesOfItsListeners(t *testing.T) {
	overrides := 0
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		o := newOracle(s)
		for _, rule := range ingress.Rules(gateway.Build(s, randomOptions).Table) {
			if rule.Entry == nil || rule.Service == answerError {
				continue
			}
			want := o.connectTimeout(t, rule)
			var got *int64
			if rule.OriginRequest != nil {
				got = rule.OriginRequest.ConnectTimeout
			}
			if want != nil {
				overrides++
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("rule of %s for %q %q: connectTimeout differs (-want +got):\n%s", rule.Entry.Source.Route.NamespacedName, rule.Hostname, rule.Path, diff)
			}
		}
	})
	if overrides == 0 {
		t.Error("no rule of the clusters overrides a setting, want some")
	}
}

func (o *oracle) connectTimeout(t *testing.T, rule ingress.Rule) *int64 {
	t.Helper()
	i := slices.IndexFunc(o.snapshot.HTTPRoutes, func(r *gatewayv1.HTTPRoute) bool {
		return r.Name == rule.Entry.Source.Route.Name && r.Namespace == rule.Entry.Source.Route.Namespace
	})
	route := o.snapshot.HTTPRoutes[i]
	group, _ := o.groupOf(hostOf(rule.Hostname))
	var attached []*claim
	for _, ref := range route.Spec.ParentRefs {
		for _, c := range o.selected(ref, route.Namespace) {
			if c.claims && c.hostname() == group && o.admits(c, specHTTPRoute(route)) {
				attached = append(attached, c)
			}
		}
	}
	slices.SortStableFunc(attached, func(a, b *claim) int {
		// "HTTPS" sorts after "HTTP".
		return cmp.Or(cmp.Compare(b.Protocol, a.Protocol), cmp.Compare(a.Port, b.Port))
	})
	for _, c := range attached {
		for _, entry := range o.listenerEntries(c) {
			if entry.OriginRequest != nil && entry.OriginRequest.ConnectTimeout != nil {
				seconds, err := entry.OriginRequest.ConnectTimeout.Seconds()
				if err != nil {
					t.Fatal(err)
				}
				return &seconds
			}
		}
	}
	return nil
}

// hostOf returns a host that matches the hostname and wider hostnames only.
func hostOf(hostname string) string {
	if hostname == "" {
		return "host.invalid"
	}
	if hostname[0] == '*' {
		return "unique" + hostname[1:]
	}
	return hostname
}
