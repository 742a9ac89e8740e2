package ingress

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// ServedOn returns whether a configuration leads the requests for a hostname to the
// protected listener of Envoy. It returns false for ok when the configuration does not lead
// them to Envoy, or not all of them to one listener.
//
// The requests are those with a canonical host whose most specific hostname is this one:
// for a wildcard, rules for narrower hostnames do not count. Like the connector, ServedOn
// uses the first rule that matches.
func ServedOn(configuration provider.Configuration, hostname string) (protected, ok bool) {
	for _, rule := range configuration.Ingress {
		if !routing.Covers(ruleHostname(rule), hostname) {
			continue
		}
		protected = rule.Service == serviceProtected
		return protected, rule.Path == "" && (protected || rule.Service == serviceOpen)
	}
	return false, false
}

// ruleHostname returns the hostname of a rule in the form of the routing table.
func ruleHostname(rule provider.IngressRule) string {
	if rule.Hostname == "*" {
		return ""
	}
	return rule.Hostname
}
