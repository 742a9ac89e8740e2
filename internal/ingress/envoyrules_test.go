package ingress_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// servedOn names the listener to which the rules lead the requests for a hostname.
func servedOn(c provider.Configuration, hostname string) string {
	switch ruleFor(&c, hostname).Service {
	case "http://127.0.0.1:10080":
		return "open"
	case "http://127.0.0.1:10081":
		return "protected"
	default:
		return "unknown"
	}
}

// randomTable returns a table with random hostnames, and with more Access entries than
// hostnames.
func randomTable(dice *rand.Rand) *routing.Table {
	hostnames := []string{""}
	for _, domain := range []string{"example.com", "a.example.com", "b.a.example.com", "c.example.com", "example.org"} {
		hostnames = append(hostnames, domain, "*."+domain)
	}
	table := &routing.Table{Access: routing.Access{}, ClusterDomain: "cluster.local"}
	for _, hostname := range hostnames {
		if dice.IntN(3) == 0 {
			table.Groups = append(table.Groups, groupOf(hostname))
		}
		switch dice.IntN(12) {
		case 0, 1:
			table.Access[hostname] = nil
		case 2:
			table.Access[hostname] = &routing.Requirement{Waiting: true}
		case 3, 4:
			table.Access[hostname] = &routing.Requirement{Closed: true}
		case 5, 6, 7, 8:
			table.Access[hostname] = accessTo([]string{"a", "b"}[dice.IntN(2)])
		}
	}
	return table
}

// The rules lead the requests for every hostname in a table to the listener that its
// access needs, with exactly this access, and no rule is superfluous.
func TestEnvoyRulesHaveEveryHostnamesAccess(t *testing.T) {
	counts := map[string]int{}
	for seed := range uint64(3000) {
		table := randomTable(rand.New(rand.NewPCG(seed, 0))) //nolint:gosec // the test must be reproducible
		c := ingress.EnvoyConfiguration(table)
		if err := provider.Validate(*c); err != nil {
			t.Fatalf("seed %d: the connector rejects the configuration: %v", seed, err)
		}
		if len(c.Ingress) > len(table.Access)+1 {
			t.Errorf("seed %d: %d rules for %d hostnames of the settings", seed, len(c.Ingress), len(table.Access))
		}
		used := map[string]bool{"": true}
		for _, host := range table.Hosts() {
			listener, rule := servedOn(*c, host.Hostname), ruleFor(c, host.Hostname)
			if host.Access.IsClosed() {
				counts["closed"]++
				continue // each listener returns 403
			}
			used[rule.Hostname] = true
			counts[listener]++
			if host.Access.IsOpen() != (listener == "open") || listener == "unknown" {
				t.Errorf("seed %d: %q is served on %s: %q", seed, host.Hostname, listener, written(c.Ingress))
			}
			if got, want := audienceOf(rule), audience(host); got != want {
				t.Errorf("seed %d: %q has a rule for the audience %q, want %q: %q", seed, host.Hostname, got, want, written(c.Ingress))
			}
		}
		if unused := slices.IndexFunc(c.Ingress, func(rule provider.IngressRule) bool { return !used[rule.Hostname] }); unused >= 0 {
			t.Errorf("seed %d: no hostname needs rule %d of %q", seed, unused, written(c.Ingress))
		}
	}
	if len(counts) != 3 {
		t.Errorf("the tables do not have all kinds of hostnames: %v", counts)
	}
}

// ruleFor returns the rule that the connector uses for a host that the hostname covers.
func ruleFor(c *provider.Configuration, hostname string) provider.IngressRule {
	host := strings.Replace(hostname, "*", "host", 1)
	for _, rule := range c.Ingress {
		suffix, wildcard := strings.CutPrefix(rule.Hostname, "*")
		if rule.Hostname == "" || rule.Hostname == host || wildcard && strings.HasSuffix(host, suffix) {
			return rule
		}
	}
	panic("the last rule matches every host")
}

func audienceOf(rule provider.IngressRule) string {
	if rule.OriginRequest.Access == nil {
		return ""
	}
	return strings.Join(rule.OriginRequest.Access.AUDTag, ",")
}

func audience(host *routing.Host) string {
	if host.Access.IsOpen() {
		return ""
	}
	return string(host.Access.AUDTags[0])
}

// Thousands of tenant hostnames need no more rules than the settings have entries.
func TestHostnamesOfTenantsNeedNoRules(t *testing.T) {
	table := &routing.Table{Access: routing.Access{"": accessTo("a"), "*.example.com": accessTo("b"), "*.example.org": nil}}
	for i := range 3000 {
		for _, domain := range []string{"example.com", "example.org", "example.net"} {
			table.Groups = append(table.Groups, groupOf(fmt.Sprintf("h%d.%s", i, domain)))
		}
	}
	want := []string{"*.example.com:10081 b", "*.example.org:10080", "*:10081 a"}
	if got := written(ingress.EnvoyConfiguration(table).Ingress); strings.Join(got, ", ") != strings.Join(want, ", ") {
		t.Errorf("got the rules %q, want %q", got, want)
	}
}

// The entries of both levels alone stay below the limit, and docs/limits.md states it.
func TestSettingsStayBelowTheLimitOfRulesForAccess(t *testing.T) {
	content, err := os.ReadFile("../../config/crd/tunnelgateway.dev_tunnelconfigurations.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(content, &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	if rules := 2**spec.Properties["listenerConfigurations"].MaxItems + 1; rules > routing.MaxAccessRules {
		t.Errorf("the settings permit %d rules, want at most %d", rules, routing.MaxAccessRules)
	}
	limits, err := os.ReadFile("../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	if row := regexp.MustCompile(fmt.Sprintf(`\| rules for Access .*with Envoy.*\| %d \|`, routing.MaxAccessRules)); !row.Match(limits) {
		t.Errorf("docs/limits.md has no row %s", row)
	}
}
