package ingress

import (
	"maps"
	"slices"

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
func (r reached) atLeast(access *routing.Requirement) bool {
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

// reached returns where the rules lead the requests for a hostname; see met.
func (x indexedRules) reached(hostname string) reached {
	var r reached
	for _, rule := range x.met(hostname) {
		switch rule.Service {
		case serviceOpen:
			r.open = true
		case serviceProtected:
			r.protected = append(r.protected, rule.OriginRequest.Access)
		}
	}
	return r
}

// met returns the rules that the requests with a canonical host can meet whose most specific
// hostname is this one: for a wildcard, rules for narrower hostnames do not count. Like the
// connector, it uses the first rule that matches, and each rule that can match before it.
func (x indexedRules) met(hostname string) []provider.IngressRule {
	positions := slices.Clone(x.byHostname[hostname])
	for wide := range routing.WiderHostnames(hostname) {
		positions = append(positions, x.byHostname[wide]...)
	}
	slices.Sort(positions)
	var met []provider.IngressRule
	for _, i := range positions {
		met = append(met, x.rules[i])
		if x.rules[i].Path == "" {
			break
		}
	}
	return met
}

// ruleHostname returns the hostname in the form that the routing table uses.
func ruleHostname(rule provider.IngressRule) string { return hostnameOf(rule.Hostname) }
