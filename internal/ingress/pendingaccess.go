package ingress

import (
	"maps"
	"reflect"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// PendingAccess returns the hostnames whose rules differ between the desired
// configuration for Envoy and the current one, in order. Until Cloudflare has the desired
// one, the connectors apply the current Access settings to these hostnames. "*" stands
// for the last rule.
func PendingAccess(desired, current provider.Configuration) []string {
	before, after := accessRules(current), accessRules(desired)
	differing := map[string]bool{}
	for hostname, rule := range after {
		if current, ok := before[hostname]; !ok || !reflect.DeepEqual(rule, current) {
			differing[hostname] = true
		}
	}
	for hostname := range before {
		if _, ok := after[hostname]; !ok {
			differing[hostname] = true
		}
	}
	return slices.Sorted(maps.Keys(differing))
}

func accessRules(c provider.Configuration) map[string]provider.IngressRule {
	rules := make(map[string]provider.IngressRule, len(c.Ingress))
	for _, rule := range c.Ingress {
		hostname := rule.Hostname
		if hostname == "" {
			hostname = "*"
		}
		rules[hostname] = rule
	}
	return rules
}
