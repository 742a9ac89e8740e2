package ingress

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// InEffect returns what a tunnel's configuration requires of requests, by the hostname of
// its rules: nil for an open one. [routing.Access.Of] finds the requirement for any other
// hostname.
//
// A hostname demands a token only if all its rules that lead to a backend demand the same
// one, including the rules for wider hostnames that its requests can meet. It is closed if
// its requests meet nothing but a rule with the status 403. With Envoy, a closed hostname has
// no rule, so InEffect does not know about it.
func InEffect(c provider.Configuration) routing.Access {
	access := make(routing.Access, len(c.Ingress))
	if !slices.ContainsFunc(c.Ingress, requires) {
		for _, rule := range c.Ingress { // of most Gateways
			access[ruleHostname(rule)] = nil
		}
		return access
	}
	rules := indexRules(c, "")
	for hostname := range rules.byHostname {
		access[hostname] = requirementOf(rules.met(hostname))
	}
	return access
}

// requires reports whether the rule can make a hostname closed or demand a token.
func requires(rule provider.IngressRule) bool {
	return rule.Service == serviceClosed || rule.OriginRequest.Access != nil
}

// requirementOf returns what the rules that requests for a hostname can meet require.
func requirementOf(met []provider.IngressRule) *routing.Requirement {
	if len(met) > 0 && met[0].Service == serviceClosed && met[0].Path == "" {
		return &routing.Requirement{Closed: true}
	}
	var found *provider.AccessSettings
	for _, rule := range met {
		settings := rule.OriginRequest.Access
		demands := accessKey(settings) != ""
		switch {
		case !demands && strings.HasPrefix(rule.Service, statusPrefix):
			continue // no backend
		case !demands, found != nil && accessKey(found) != accessKey(settings):
			return nil
		}
		found = settings
	}
	if found == nil {
		return nil
	}
	return &routing.Requirement{TeamName: found.TeamName, AUDTags: slices.Clone(found.AUDTag)}
}
