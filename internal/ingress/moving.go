package ingress

import (
	"maps"
	"reflect"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Served are the hostnames that Envoy serves on each listener. A hostname with the value
// false has no routes there, which shadows the routes of wider hostnames.
type Served struct {
	Open, Protected map[string]bool
}

// includes reports whether requests for the hostname have routes on the listener.
func (s Served) includes(protected bool, hostname string) bool {
	hostnames := s.Open
	if protected {
		hostnames = s.Protected
	}
	decisive, ok := routing.MostSpecific(hostnames, hostname)
	return ok && hostnames[decisive]
}

// Moving returns the hostnames of a table that both listeners of Envoy must serve: their
// Access changes, and the tunnel's current configuration still leads their requests to the
// other listener. current is nil if it is unknown. served contains the hostnames that Envoy
// serves now.
//
// A hostname that requires Access stays on the open listener only if requests reached it
// there before: a new hostname is never served without Access.
func Moving(t *routing.Table, current *provider.Configuration, served Served) map[string]bool {
	moving := map[string]bool{}
	for _, host := range t.Hosts() {
		other := host.Access == nil // whether the other listener is the protected one
		if current == nil {
			if served.includes(other, host.Hostname) {
				moving[host.Hostname] = true
			}
			continue
		}
		protected, ok := ServedOn(*current, host.Hostname)
		if ok && protected == other && (protected || served.includes(false, host.Hostname)) {
			moving[host.Hostname] = true
		}
	}
	return moving
}

// PendingAccess returns the hostnames whose rules differ between the desired configuration for
// Envoy and the tunnel's current one, in order. Until Cloudflare has the desired one, the
// connectors check the current Access of these hostnames. The hostname of the last rule is "*".
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
