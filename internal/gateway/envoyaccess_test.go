package gateway_test

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// With Envoy, a route answers a request for a protected hostname only through a rule with
// the access that the hostname requires, in any form of its host: a rule without access
// leads to the open listener, which has no routes for the hostname. A request for an open
// hostname needs no token. Half the clusters are above their limits.
func TestAccessIsRequiredForEveryRequestWithEnvoy(t *testing.T) {
	var total envoyAccessCheck
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		s.DataPlane = v1alpha1.DataPlaneEnvoy
		withoutConnectorFields(s)
		if seed%2 == 0 {
			lowLimits(s, seed)
		}
		result := gateway.Build(s, options)
		table := result.Table
		if table == nil {
			return
		}
		routes, _ := result.Usage.Refused()
		total.aboveLimits += routes + result.Usage.Confined
		c := &envoyAccessCheck{oracle: newOracle(s), configuration: ingress.EnvoyConfiguration(table), table: table, served: openHosts(table)}
		c.rules = compile(t, c.configuration)
		dice := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // the test must be reproducible
		hosts := append(hostsAround(s), accessHosts()...)
		for range 400 {
			c.check(t, otherForm(dice, hosts[dice.IntN(len(hosts))]))
		}
		total.protected += c.protected
		total.onOpen += c.onOpen
		total.open += c.open
		total.denied += c.denied
	})
	if total.protected == 0 || total.onOpen == 0 || total.open == 0 || total.denied == 0 || total.aboveLimits == 0 {
		t.Errorf("the clusters do not have every case: %d protected requests, %d in another form on the open listener and %d on the protected one, %d open ones, %d routes above a limit",
			total.protected, total.onOpen, total.denied, total.open, total.aboveLimits)
	}
}

// permittedHost matches the hosts that the filter on the protected listener permits.
var permittedHost = regexp.MustCompile(`^(?:[^A-Z:.\[\]]([^A-Z:\[\]]*[^A-Z:.\[\]])?(:[0-9]*)?)$`)

// envoyAccessCheck checks the requests to one cluster.
type envoyAccessCheck struct {
	oracle        *oracle
	rules         *simulator.Rules
	configuration *provider.Configuration
	table         *routing.Table
	// served reports for each hostname in the table whether the open listener has routes.
	served map[string]bool
	// protected and open count the requests with a canonical host, and onOpen the
	// requests for protected hostnames that reach the open listener. denied counts the
	// requests with another form on the protected listener, and aboveLimits the routes
	// above a limit.
	protected, onOpen, open, denied, aboveLimits int
}

func (c *envoyAccessCheck) check(t *testing.T, host requestHost) {
	t.Helper()
	index, _, _ := c.rules.Match(host.sent, "/")
	rule := c.configuration.Ingress[index]
	isOpen := rule.OriginRequest.Access == nil
	if isOpen != strings.HasSuffix(rule.Service, ":10080") {
		t.Errorf("rule %+v leads to the wrong listener", rule)
	}
	hostname, ok := routing.MostSpecific(c.served, host.canonical)
	if !ok {
		return
	}
	required, _ := c.oracle.requiredAccess(host.canonical)
	c.checkRefusal(t, host, isOpen, required != nil)
	if required != nil {
		c.checkProtected(t, host, rule, required, c.served[hostname])
	} else if host.isCanonical() {
		c.open++
		if !isOpen {
			t.Errorf("request %q for an open hostname meets rule %+v", host.sent, rule)
		}
	}
}

// checkRefusal checks the status that the plan shows for the host form.
func (c *envoyAccessCheck) checkRefusal(t *testing.T, host requestHost, isOpen, isProtected bool) {
	t.Helper()
	want := 0
	switch {
	case host.isCanonical():
	case !isOpen:
		want = 403
	case isProtected:
		want = 404
	}
	if got := ingress.EnvoyRefusal(c.table, routing.Request{Host: strings.TrimSuffix(host.sent, ":8443"), Path: "/"}); got != want {
		t.Errorf("request %q is refused with %d, want %d", host.sent, got, want)
	}
}

func (c *envoyAccessCheck) checkProtected(t *testing.T, host requestHost, rule provider.IngressRule, required *routing.Requirement, hasOpenRoutes bool) {
	t.Helper()
	isOpen := rule.OriginRequest.Access == nil
	if isOpen {
		c.onOpen++
		if hasOpenRoutes {
			t.Errorf("request %q for a protected hostname gets an answer of a route through rule %+v", host.sent, rule)
		}
	} else if !host.isCanonical() {
		c.denied++
		if permittedHost.MatchString(host.sent) {
			t.Errorf("request %q meets rule %+v, whose audience can be another, and the filter of the protected listener permits it", host.sent, rule)
		}
	}
	if host.isCanonical() {
		c.protected++
		if !permittedHost.MatchString(host.sent) {
			t.Errorf("the filter of the protected listener denies request %q", host.sent)
		}
		if got := accessOf(rule); !got.Equal(required) {
			t.Errorf("request %q meets rule %+v with access %+v, want %+v", host.sent, rule, got, required)
		}
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

// openHosts reports for each hostname in the table whether the open listener has routes
// for it. Envoy ignores the letter case, port and final dot of a host there.
func openHosts(t *routing.Table) map[string]bool {
	hosts := map[string]bool{}
	for _, h := range envoy.Whole(envoy.ListenerOpen, envoy.Render(t).Routes).VirtualHosts {
		hostname := h.Domains[0]
		if hostname == "*" {
			hostname = ""
		}
		hosts[hostname] = len(h.Routes) > 0
	}
	return hosts
}
