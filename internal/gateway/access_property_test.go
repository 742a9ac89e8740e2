package gateway_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// decisiveEntry returns the level's entry with access whose hostname is the most specific
// that covers the host, or nil.
func decisiveEntry(level *v1alpha1.TunnelConfiguration, host string) *v1alpha1.ListenerConfiguration {
	var decisive *v1alpha1.ListenerConfiguration
	for i := range level.Spec.ListenerConfigurations {
		entry := &level.Spec.ListenerConfigurations[i]
		if entry.Access != nil && hostMatches(entry.Hostname, host) && (decisive == nil || isMoreSpecific(entry.Hostname, decisive.Hostname)) {
			decisive = entry
		}
	}
	return decisive
}

// isMoreSpecific compares two hostnames that cover the same host. Without the star, the
// more specific one is longer.
func isMoreSpecific(a, b string) bool {
	return len(strings.TrimPrefix(a, "*")) > len(strings.TrimPrefix(b, "*"))
}

// requiredAccess returns the access that requests for the host require, or nil, and the
// hostname of the most specific entry that covers the host.
func (o *oracle) requiredAccess(host string) (access *routing.Requirement, hostname string) {
	class, own := decisiveEntry(o.snapshot.ClassConfiguration, host), decisiveEntry(o.snapshot.GatewayConfiguration, host)
	for _, entry := range []*v1alpha1.ListenerConfiguration{class, own} {
		if entry == nil {
			continue
		}
		if isMoreSpecific(entry.Hostname, hostname) {
			hostname = entry.Hostname
		}
		if access == nil && entry.Access.Required {
			access = requirementOf(entry.Access)
		}
	}
	return access, hostname
}

// requestHost is the host that a request has, and the hostname that DNS resolves for it.
type requestHost struct{ sent, canonical string }

// otherForm returns a host that DNS does not distinguish from the host, with a port in
// some cases.
func otherForm(dice *rand.Rand, host string) requestHost {
	h := requestHost{host, host}
	labels := strings.Split(host, ".")
	switch dice.IntN(6) {
	case 0:
		for i := range labels {
			if dice.IntN(2) == 0 {
				labels[i] = strings.ToUpper(labels[i])
			}
		}
		h.sent = strings.Join(labels, ".")
	case 1: // the labels on the left, so that the wildcards on the right match
		n := 1 + dice.IntN(len(labels))
		h.sent = strings.Join(append(strings.Split(strings.ToUpper(strings.Join(labels[:n], ".")), "."), labels[n:]...), ".")
	case 2:
		h.sent += "."
	}
	if dice.IntN(4) == 0 {
		h.sent += ":8443"
	}
	return h
}

// isCanonical reports whether the connector recognizes the host. It ignores the port.
func (h requestHost) isCanonical() bool { return strings.TrimSuffix(h.sent, ":8443") == h.canonical }

// accessCheck checks the requests to one cluster.
type accessCheck struct {
	oracle        *oracle
	rules         *simulator.Rules
	configuration *provider.Configuration
	gaps          []routing.AccessGap
	// protected, unrecognized and bypasses count requests for protected hostnames that
	// reach a backend: all, only with a host that is not canonical, and only without a
	// token.
	protected, unrecognized, bypasses int
}

// check reports an error if the request reaches a backend with other access than its
// hostname requires. A host that the connector does not recognize may meet a rule with a
// wider hostname's access, and, exactly where a gap is reported, a rule without.
func (c *accessCheck) check(t *testing.T, host requestHost, path string) {
	t.Helper()
	index, service, _ := c.rules.Match(host.sent, path)
	if strings.HasPrefix(service, "http_status:") {
		return
	}
	required, hostname := c.oracle.requiredAccess(host.canonical)
	rule := c.configuration.Ingress[index]
	if host.isCanonical() {
		if got := accessOf(rule); !got.Equal(required) {
			t.Errorf("request %q %q meets the rule for %q %q with access %+v, want %+v", host.sent, path, rule.Hostname, rule.Path, got, required)
		}
	}
	if required == nil {
		return
	}
	c.protected++
	if host.isCanonical() {
		return
	}
	c.unrecognized++
	if rule.OriginRequest.Access == nil {
		c.bypasses++
		if !slices.Contains(c.gaps, routing.AccessGap{Hostname: hostname, Through: rule.Hostname}) {
			t.Errorf("request %q %q for protected hostname %q meets rule %+v without access, and the gap is not reported: %+v", host.sent, path, hostname, rule, c.gaps)
		}
	}
}

// requirementOf returns what an entry requires.
func requirementOf(a *v1alpha1.Access) *routing.Requirement {
	r := &routing.Requirement{TeamName: *a.TeamName}
	for _, tag := range a.AUDTags {
		r.AUDTags = append(r.AUDTags, string(tag))
	}
	return r
}

// accessOf returns what a rule requires.
func accessOf(rule provider.IngressRule) *routing.Requirement {
	rendered := rule.OriginRequest.Access
	if rendered == nil {
		return nil
	}
	return &routing.Requirement{TeamName: rendered.TeamName, AUDTags: rendered.AUDTag}
}

// wantWitness checks that a host exists for which the connector tries a rule through
// which the gap is reported, with a backend and without access. It ignores the paths in
// these rules, and other rules with a path.
func (c *accessCheck) wantWitness(t *testing.T, gap routing.AccessGap) {
	t.Helper()
	host, suffix := strings.Replace(gap.Hostname, "*", "x", 1), strings.TrimPrefix(gap.Through, "*")
	sent := strings.ToUpper(strings.TrimSuffix(host, suffix)) + suffix
	if gap.Through == "" {
		sent = host + "."
	}
	reduced := &provider.Configuration{}
	for _, rule := range c.configuration.Ingress {
		isOpen := rule.Hostname == gap.Through && rule.OriginRequest.Access == nil && !strings.HasPrefix(rule.Service, "http_status:")
		if isOpen && rule.Path != "" {
			rule.Path = "^/"
		}
		if isOpen || rule.Path == "" {
			reduced.Ingress = append(reduced.Ingress, rule)
		}
	}
	index, service, _ := compile(t, reduced).Match(sent, "/")
	rule := reduced.Ingress[index]
	if rule.Hostname != gap.Through || rule.OriginRequest.Access != nil || strings.HasPrefix(service, "http_status:") {
		t.Errorf("gap %+v is reported, but a request for %q meets rule %+v", gap, sent, rule)
	}
}

// No request for a protected hostname reaches a backend except through a rule with the
// access that the hostname requires. The only exceptions are the gaps that the Gateway
// reports: hosts in another form that the connector does not recognize, below a rule for a
// wider hostname without access. Each reported gap exists.
func TestAccessIsRequiredForEveryRequest(t *testing.T) {
	var total accessCheck
	gaps := 0
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		result := gateway.Build(s, randomOptions)
		if result.Table == nil {
			return
		}
		c := &accessCheck{oracle: newOracle(s), configuration: rulesConfiguration(result.Table), gaps: ingress.AccessGaps(result.Table)}
		c.rules = compile(t, c.configuration)
		dice := rand.New(rand.NewPCG(seed, 5)) //nolint:gosec // the test must be reproducible
		hosts, paths := append(hostsAround(s), accessHosts()...), pathsAround(s)
		for range 400 {
			c.check(t, otherForm(dice, hosts[dice.IntN(len(hosts))]), paths[dice.IntN(len(paths))])
		}
		for _, gap := range c.gaps {
			c.wantWitness(t, gap)
		}
		wantBypassWarning(t, result, len(c.gaps) > 0)
		gaps += len(c.gaps)
		total.protected += c.protected
		total.unrecognized += c.unrecognized
		total.bypasses += c.bypasses
	})
	if gaps == 0 || total.bypasses == 0 || total.unrecognized <= total.bypasses || total.protected <= total.unrecognized {
		t.Errorf("the clusters do not have every case: %d gaps, %d requests for protected hostnames, %d of them in another form, %d of these without a token",
			gaps, total.protected, total.unrecognized, total.bypasses)
	}
}

// accessHosts returns hosts that entry hostnames cover.
func accessHosts() []string {
	var hosts []string
	for _, hostname := range randomHostnames {
		if hostname != "" {
			hosts = append(hosts, strings.Replace(hostname, "*", "host", 1))
		}
	}
	return hosts
}

func wantBypassWarning(t *testing.T, r *gateway.Result, want bool) {
	t.Helper()
	got := slices.ContainsFunc(r.Warnings, func(w gateway.Warning) bool { return w.Reason == conditions.EventAccessBypass })
	if got != want {
		t.Errorf("the Gateway reports a bypass: %t, want %t", got, want)
	}
}

// The table's hosts, with their entries and their access, are enough for a data plane
// that compares hostnames as DNS does.
func TestHostsHaveTheRequiredAccess(t *testing.T) {
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		table := gateway.Build(s, randomOptions).Table
		if table == nil {
			return
		}
		o, byHostname := newOracle(s), map[string]*routing.Host{}
		for _, host := range table.Hosts() {
			byHostname[host.Hostname] = host
		}
		for _, request := range requestsFor(s, seed, false, 100) {
			hostname, ok := routing.MostSpecific(byHostname, request.Host)
			if !ok {
				continue
			}
			required, _ := o.requiredAccess(request.Host)
			if got := byHostname[hostname].Access; !got.Equal(required) {
				t.Errorf("host %q has the access %+v for %q, want %+v", hostname, got, request.Host, required)
			}
		}
	})
}

// The rules that Access adds count: route rules for their namespace, and all together for
// the Gateway. The count can be too high, because it includes rules that no request can
// reach.
func TestUsageIncludesTheRulesForAccess(t *testing.T) {
	forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, _ uint64) {
		result := gateway.Build(s, randomOptions)
		if result.Table == nil {
			return
		}
		rules, ofRoutes := -1, map[string]int{} // without the rule at the end
		for _, rule := range ingress.Rules(result.Table) {
			if rules++; rule.Entry != nil {
				ofRoutes[rule.Entry.Source.Route.Namespace]++
			}
		}
		if result.Usage.Rules < rules {
			t.Errorf("the Gateway has %d rules, but only %d count", rules, result.Usage.Rules)
		}
		for _, tenant := range result.Usage.Tenants {
			if ofRoutes[tenant.Name] > tenant.Rules {
				t.Errorf("the routes of namespace %s have %d rules, but only %d count", tenant.Name, ofRoutes[tenant.Name], tenant.Rules)
			}
		}
	})
}
