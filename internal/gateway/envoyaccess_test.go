package gateway_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// With Envoy, no request for a protected hostname gets an answer of a route except through
// a rule with the access that the hostname requires, in any form of its host: a rule
// without access leads to the open listener, which has no routes for the hostname. A
// request for an open hostname needs no token.
func TestAccessIsRequiredForEveryRequestWithEnvoy(t *testing.T) {
	protected, otherForms, open := 0, 0, 0
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		s.DataPlane = v1alpha1.DataPlaneEnvoy
		withoutConnectorFields(s)
		result := gateway.Build(s, options)
		if result.Table == nil {
			return
		}
		configuration, o, served := ingress.EnvoyConfiguration(result.Table), newOracle(s), openHosts(result.Table)
		rules, dice := compile(t, configuration), rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // the test must be reproducible
		hosts := append(hostsAround(s), accessHosts()...)
		for range 400 {
			host := otherForm(dice, hosts[dice.IntN(len(hosts))])
			index, _, _ := rules.Match(host.sent, "/")
			rule := configuration.Ingress[index]
			if isOpen := rule.OriginRequest.Access == nil; isOpen != strings.HasSuffix(rule.Service, ":10080") {
				t.Fatalf("rule %+v leads to the wrong listener", rule)
			}
			hostname, isServed := routing.MostSpecific(served, host.canonical)
			required, _ := o.requiredAccess(host.canonical)
			switch {
			case !isServed:
			case required == nil && host.isCanonical():
				open++
				if rule.OriginRequest.Access != nil {
					t.Errorf("request %q for an open hostname meets rule %+v", host.sent, rule)
				}
			case required == nil:
			case rule.OriginRequest.Access == nil:
				otherForms++
				if host.isCanonical() || served[hostname] {
					t.Errorf("request %q for a protected hostname gets an answer of a route through rule %+v", host.sent, rule)
				}
			case host.isCanonical():
				protected++
				if got := accessOf(rule); !got.Equal(required) {
					t.Errorf("request %q meets rule %+v with access %+v, want %+v", host.sent, rule, got, required)
				}
			}
		}
	})
	if protected == 0 || otherForms == 0 || open == 0 {
		t.Errorf("the clusters do not have every case: %d protected requests, %d in another form on the open listener, %d open ones", protected, otherForms, open)
	}
}

// withoutConnectorFields removes the settings that are not permitted with Envoy.
func withoutConnectorFields(s *gateway.Snapshot) {
	for _, c := range []*v1alpha1.TunnelConfiguration{s.ClassConfiguration, s.GatewayConfiguration} {
		c.Spec.OriginRequest, c.Spec.Connector = nil, nil
		for i := range c.Spec.ListenerConfigurations {
			c.Spec.ListenerConfigurations[i].OriginRequest = nil
		}
	}
}

// openHosts reports for each hostname of the table whether the open listener has routes for
// it. Envoy ignores the case, the port and a dot at the end of a host there.
func openHosts(t *routing.Table) map[string]bool {
	hosts := map[string]bool{}
	for _, h := range envoy.Render(t).Open.VirtualHosts {
		hostname := h.Domains[0]
		if hostname == "*" {
			hostname = ""
		}
		hosts[hostname] = len(h.Routes) > 0
	}
	return hosts
}
