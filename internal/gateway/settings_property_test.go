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
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// forEachConfiguredCluster tries a property on random clusters with random settings at
// both levels.
func forEachConfiguredCluster(t *testing.T, property func(t *testing.T, s *gateway.Snapshot, seed uint64)) {
	t.Helper()
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 3)), snapshot: s} //nolint:gosec // it has to be reproducible
		setParametersRefs(s)
		s.ClassConfiguration = configuration("platform", "defaults", d.settings())
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

// access has one team most often, and few tags, so that some contradict.
func (d *randomizer) access() *v1alpha1.Access {
	tags := []v1alpha1.AUDTag{"a", "b", "c"}
	d.Shuffle(len(tags), func(i, j int) { tags[i], tags[j] = tags[j], tags[i] })
	return &v1alpha1.Access{
		Required: d.chance(60), TeamName: new(pick(d, "one", "one", "one", "two")), AUDTags: tags[:pick(d, 1, 2, 3, 3)],
	}
}

// TestSettingsPreserveTheProperties: what holds without settings holds with them.
func TestSettingsPreserveTheProperties(t *testing.T) {
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		before, want := deepCopy(s), transcript(t, s)
		if !reflect.DeepEqual(before, s) {
			t.Fatalf("Build changed its input (-before +after):\n%s", gocmp.Diff(before, s))
		}
		dice := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // it has to be reproducible
		dice.Shuffle(len(s.ListenerSets), reflect.Swapper(s.ListenerSets))
		dice.Shuffle(len(s.HTTPRoutes), reflect.Swapper(s.HTTPRoutes))
		for _, c := range []*v1alpha1.TunnelConfiguration{s.ClassConfiguration, s.GatewayConfiguration} {
			dice.Shuffle(len(c.Spec.ListenerConfigurations), reflect.Swapper(c.Spec.ListenerConfigurations))
		}
		if got := transcript(t, s); !bytes.Equal(got, want) {
			t.Fatalf("the order of the input matters (-want +got):\n%s", gocmp.Diff(lines(want), lines(got)))
		}
		if c := gateway.Build(s, randomOptions).Configuration(); c != nil {
			if err := provider.Validate(*c); err != nil {
				t.Fatal(err)
			}
			compile(t, c)
		}
	})
}

// listenerEntries are the entries for a listener, the one that counts first: all of the
// preferred level before any of the other, and the hostname's before the port's.
func (o *oracle) listenerEntries(c *claim) []v1alpha1.ListenerConfiguration {
	levels := []*v1alpha1.TunnelConfiguration{o.snapshot.ClassConfiguration, o.snapshot.GatewayConfiguration}
	if levels[0].Spec.MergingMode != nil {
		slices.Reverse(levels)
	}
	var chain []v1alpha1.ListenerConfiguration
	for _, level := range levels {
		for _, hostname := range slices.Compact([]string{c.hostname(), ""}) {
			for _, entry := range level.Spec.ListenerConfigurations {
				if entry.ProtocolPort == fmt.Sprintf("%s:%d", c.Protocol, c.Port) && entry.Hostname == hostname {
					chain = append(chain, entry)
				}
			}
		}
	}
	return chain
}

// requiredAccess returns what tokens do for the hostname: none have to when demanded is
// false, and no token can when there are no tags.
func (o *oracle) requiredAccess(hostname string) (team string, tags []string, demanded bool) {
	for _, c := range o.claims {
		if !c.claims || c.hostname() != hostname {
			continue
		}
		i := slices.IndexFunc(o.listenerEntries(c), func(entry v1alpha1.ListenerConfiguration) bool { return entry.Access != nil })
		if i < 0 || !o.listenerEntries(c)[i].Access.Required {
			continue
		}
		access := o.listenerEntries(c)[i].Access
		var own []string
		for _, tag := range access.AUDTags {
			if !demanded || slices.Contains(tags, string(tag)) && team == *access.TeamName {
				own = append(own, string(tag))
			}
		}
		slices.Sort(own)
		team, tags, demanded = *access.TeamName, own, true
	}
	return team, tags, demanded
}

// TestEveryRequestRequiresAccessOfAllListeners: a request for a hostname reaches a backend with no
// less than what each of the hostname's listeners demands, and nothing is
// demanded that none of them does.
func TestEveryRequestRequiresAccessOfAllListeners(t *testing.T) {
	demanded, contradicted := 0, 0
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		o := newOracle(s)
		configuration := gateway.Build(s, randomOptions).Configuration()
		if configuration == nil {
			return
		}
		rules := compile(t, configuration)
		dice := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // it has to be reproducible
		hosts, paths := hostsAround(s), pathsAround(s)
		for range 150 {
			host, path := hosts[dice.IntN(len(hosts))], paths[dice.IntN(len(paths))]
			index, service, _ := rules.Match(host, path)
			if hostname, found := o.groupOf(host); found && service != answerNotFound {
				demanded += o.wantAccess(t, hostname, configuration.Ingress[index])
			}
		}
		contradicted += o.contradictions()
	})
	if demanded == 0 || contradicted == 0 {
		t.Errorf("access is demanded of %d requests, and contradicts itself for %d listeners: the property is hardly tried", demanded, contradicted)
	}
}

// wantAccess returns 1 when the hostname demands access, to be counted.
func (o *oracle) wantAccess(t *testing.T, hostname string, rule provider.IngressRule) int {
	t.Helper()
	team, tags, demanded := o.requiredAccess(hostname)
	got := rule.OriginRequest.Access
	if !demanded {
		if got != nil {
			t.Errorf("%q demands nothing, but the rule %+v has access %+v", hostname, rule, got)
		}
		return 0
	}
	if got != nil {
		slices.Sort(got.AUDTag)
	}
	if diff := gocmp.Diff(&provider.Access{Required: true, TeamName: team, AUDTag: tags}, got); diff != "" || len(tags) == 0 {
		t.Errorf("%q has the rule %+v with other access (-want +got):\n%s", hostname, rule, diff)
	}
	return 1
}

// contradictions counts the listeners with a hostname that no token can do for.
func (o *oracle) contradictions() (n int) {
	for _, c := range o.claims {
		if _, tags, demanded := o.requiredAccess(c.hostname()); c.claims && demanded && len(tags) == 0 {
			n++
		}
	}
	return n
}

// TestRouteTakesOverridesOfItsListeners: HTTPS before HTTP, then the lower
// port, among the listeners that a route is attached to.
func TestRouteTakesOverridesOfItsListeners(t *testing.T) {
	tried := 0
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		o := newOracle(s)
		for _, rule := range gateway.Build(s, randomOptions).Rules {
			if rule.Route == nil || rule.Service == answerError {
				continue
			}
			want := o.connectTimeout(t, rule)
			var got *int64
			if rule.OriginRequest != nil {
				got = rule.OriginRequest.ConnectTimeout
			}
			if want != nil {
				tried++
			}
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s %q %q (-want +got):\n%s", rule.Route.NamespacedName, rule.Hostname, rule.Path, diff)
			}
		}
	})
	if tried == 0 {
		t.Error("no rule overrides anything: the property is hardly tried")
	}
}

func (o *oracle) connectTimeout(t *testing.T, rule gateway.Rule) *int64 {
	t.Helper()
	i := slices.IndexFunc(o.snapshot.HTTPRoutes, func(r *gatewayv1.HTTPRoute) bool {
		return r.Name == rule.Route.Name && r.Namespace == rule.Route.Namespace
	})
	route := o.snapshot.HTTPRoutes[i]
	group, _ := o.groupOf(hostOf(rule.Hostname))
	var attached []*claim
	for _, ref := range route.Spec.ParentRefs {
		for _, c := range o.selected(ref, route.Namespace) {
			if c.claims && c.hostname() == group && o.admits(c, route) {
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

// hostOf returns a host that only the hostname, and what is wider, stands for.
func hostOf(hostname string) string {
	if hostname == "" {
		return "host.invalid"
	}
	if hostname[0] == '*' {
		return "only-here" + hostname[1:]
	}
	return hostname
}
