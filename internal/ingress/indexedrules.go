package ingress

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// reached are the Envoy listeners to which the rules in a configuration lead the requests
// for one hostname.
type reached struct {
	open      bool
	protected []*provider.AccessSettings
}

// atLeast reports whether requests that reach the protected listener have a token that the
// access admits.
func (r reached) atLeast(access *v1alpha1.Access) bool {
	want := RenderAccess(access)
	return !slices.ContainsFunc(r.protected, func(got *provider.AccessSettings) bool {
		return got == nil || !got.Required || got.TeamName != want.TeamName ||
			slices.ContainsFunc(got.AUDTag, func(tag string) bool { return !slices.Contains(want.AUDTag, tag) })
	})
}

// indexedRules are the rules in a configuration, with their positions by hostname.
type indexedRules struct {
	hash       string
	rules      []provider.IngressRule
	byHostname map[string][]int
}

func indexRules(c provider.Configuration, hash string) indexedRules {
	x := indexedRules{hash: hash, rules: c.Ingress, byHostname: map[string][]int{}}
	for i, rule := range c.Ingress {
		hostname := ruleHostname(rule)
		x.byHostname[hostname] = append(x.byHostname[hostname], i)
	}
	return x
}

func (x indexedRules) hostnames() []string { return slices.Collect(maps.Keys(x.byHostname)) }

// reached returns where the rules lead the requests with a canonical host whose most specific
// hostname is this one: for a wildcard, rules for narrower hostnames do not count. Like the
// connector, it uses the first rule that matches, and each rule that can match before it.
func (x indexedRules) reached(hostname string) reached {
	positions := slices.Clone(x.byHostname[hostname])
	for wide := range routing.WiderHostnames(hostname) {
		positions = append(positions, x.byHostname[wide]...)
	}
	slices.Sort(positions)
	var r reached
	for _, i := range positions {
		rule := x.rules[i]
		switch rule.Service {
		case serviceOpen:
			r.open = true
		case serviceProtected:
			r.protected = append(r.protected, rule.OriginRequest.Access)
		}
		if rule.Path == "" {
			break
		}
	}
	return r
}

// ruleHostname returns the hostname in the form that the routing table uses.
func ruleHostname(rule provider.IngressRule) string { return hostnameOf(rule.Hostname) }
