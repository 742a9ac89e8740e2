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

// forEachConfiguredCluster checks a property for random clusters with random settings on
// the GatewayClass and the Gateway.
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
	for _, hostname := range randomHostnames {
		// Entries for one hostname must have equal access at one level.
		access := d.access()
		for _, port := range []string{"HTTP:80", "HTTPS:443", "HTTP:8080", "HTTP:443", "HTTPS:80", v1alpha1.EveryPort} {
			if !d.chance(10) {
				continue
			}
			entry := v1alpha1.ListenerConfiguration{ProtocolPort: port, Hostname: hostname}
			if d.chance(60) {
				entry.OriginRequest = d.originRequest()
			}
			if d.chance(60) {
				entry.Access = access
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

// access returns random access settings. There are few, so that some are equal.
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
		if c := rulesConfiguration(gateway.Build(s, randomOptions).Table); c != nil {
			if err := provider.Validate(*c); err != nil {
				t.Fatal(err)
			}
			compile(t, c)
		}
	})
}

// listenerEntries returns the listenerConfigurations entries for a listener in order of
// precedence: the preferred level before the other level, and within a level, the entries
// with a hostname before the entries without, and the entry for the port before the entry
// for every port.
func (o *oracle) listenerEntries(c *claim) []v1alpha1.ListenerConfiguration {
	levels := []*v1alpha1.TunnelConfiguration{o.snapshot.ClassConfiguration, o.snapshot.GatewayConfiguration}
	if levels[0].Spec.MergingMode != nil {
		slices.Reverse(levels)
	}
	var entries []v1alpha1.ListenerConfiguration
	for _, level := range levels {
		for _, hostname := range slices.Compact([]string{c.hostname(), ""}) {
			for _, port := range []string{fmt.Sprintf("%s:%d", c.Protocol, c.Port), "*"} {
				for _, entry := range level.Spec.ListenerConfigurations {
					if entry.ProtocolPort == port && entry.Hostname == hostname {
						entries = append(entries, entry)
					}
				}
			}
		}
	}
	return entries
}

// A rule has the settings from the listeners to which its route is attached: HTTPS before
// HTTP, then the lower port.
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
