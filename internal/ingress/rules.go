// Package ingress renders a routing table as the ingress rules of a tunnel's remote
// configuration, and defines what ingress rules can express.
//
// The package is pure, and rendering cannot fail: the table contains only what
// [Capabilities] allow.
package ingress

import (
	"regexp"
	"strconv"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// serviceNotFound is the service of the rules that end a group.
const serviceNotFound = "http_status:404"

// Rule is an ingress rule and the entry that it serves.
type Rule struct {
	// Hostname, Path and Service are the fields of the ingress rule.
	Hostname, Path, Service string
	// OriginRequest are the settings of this rule. It is nil when the settings of
	// the tunnel apply unchanged.
	OriginRequest *provider.OriginRequest
	// Entry is the entry of the table. It is nil for the 404 rules at the end of a
	// group and at the end of the configuration.
	Entry *routing.Entry
	// Namespace is the namespace of the entry's route, or of the listener of a group's
	// 404 rule. It is empty for the 404 rule at the end of the configuration.
	Namespace string
}

// Configuration returns the tunnel configuration for the table. It returns nil for
// a nil table: the tunnel then keeps its last configuration.
func Configuration(t *routing.Table) *provider.Configuration {
	if t == nil {
		return nil
	}
	rules := Rules(t)
	c := &provider.Configuration{Ingress: make([]provider.IngressRule, len(rules))}
	if t.OriginRequest != nil {
		c.OriginRequest = renderOriginRequest(*t.OriginRequest)
	}
	for i := range rules {
		c.Ingress[i] = rules[i].ingressRule()
	}
	return c
}

func (r *Rule) ingressRule() provider.IngressRule {
	rule := provider.IngressRule{Hostname: r.Hostname, Path: r.Path, Service: r.Service}
	if r.OriginRequest != nil {
		rule.OriginRequest = *r.OriginRequest
	}
	return rule
}

// Rules returns the ingress rules for the table, in order, and none for a nil table.
// A request belongs to the group with the most specific hostname and never falls
// through to a less specific group: a 404 rule ends a group. Rules that no request
// can reach are omitted.
//
// The connector enforces access only for rules that contain it, so the rule of
// every entry contains the access of its group. The 404 rules have no origin to
// protect.
func Rules(t *routing.Table) []Rule {
	if t == nil {
		return nil
	}
	groups, entries := make(map[string]struct{}, len(t.Groups)), 0
	for i := range t.Groups {
		groups[t.Groups[i].Hostname] = struct{}{}
		entries += len(t.Groups[i].Entries)
	}
	b := newBuilder(max(len(groups), entries)+1, len(groups)+1)
	for i := range t.Groups {
		g := &t.Groups[i]
		settings := newGroupSettings(t, g)
		for j := range g.Entries {
			b.add(entryRule(&g.Entries[j], t.ClusterDomain, settings))
		}
		// Other requests for the hostname must not fall through to a wider group.
		if routing.HasWider(groups, g.Hostname) {
			b.add(Rule{Hostname: g.Hostname, Service: serviceNotFound, Namespace: g.Namespace})
		}
	}
	b.add(Rule{Service: serviceNotFound})
	return b.rules
}

// builder collects ingress rules in order and omits the rules that no request can
// reach.
type builder struct {
	rules []Rule
	// answeredPaths has the hostname and path of each rule with a path.
	// answeredHostnames has the hostname of each rule without a path.
	answeredPaths     map[hostnamePath]struct{}
	answeredHostnames map[string]struct{}
}

type hostnamePath struct{ hostname, path string }

func newBuilder(rules, hostnames int) *builder {
	return &builder{
		rules:             make([]Rule, 0, rules),
		answeredPaths:     map[hostnamePath]struct{}{},
		answeredHostnames: make(map[string]struct{}, hostnames),
	}
}

// entryRule returns the rule of an entry.
func entryRule(e *routing.Entry, clusterDomain string, settings groupSettings) Rule {
	return Rule{
		Hostname: e.Hostname, Path: pathExpression(e.Match.Path), Service: service(e.Action, clusterDomain),
		OriginRequest: settings.originRequest(e), Entry: e, Namespace: e.Source.Route.Namespace,
	}
}

func (b *builder) add(rule Rule) {
	if b.isAnswered(rule.Hostname) {
		return
	}
	if rule.Path == "" {
		b.answeredHostnames[rule.Hostname] = struct{}{}
	} else {
		key := hostnamePath{rule.Hostname, rule.Path}
		if _, ok := b.answeredPaths[key]; ok {
			return
		}
		b.answeredPaths[key] = struct{}{}
	}
	b.rules = append(b.rules, rule)
}

// isAnswered reports whether an earlier rule without a path matches every request
// for the hostname.
func (b *builder) isAnswered(hostname string) bool {
	_, ok := routing.MostSpecific(b.answeredHostnames, hostname)
	return ok
}

// pathExpression returns the RE2 expression for a path match, or an empty string
// when every path matches. The connector does not anchor an expression, so it
// contains its own anchors.
func pathExpression(p routing.Path) string {
	switch {
	case p.Kind == routing.PathExact:
		return "^" + regexp.QuoteMeta(p.Value) + "$"
	case p.Kind == routing.PathExpression:
		return "^" + p.Value + "$"
	case p.Value == "":
		return ""
	default:
		return "^" + regexp.QuoteMeta(p.Value) + "(/|$)"
	}
}

// service returns the service of an action: a status, or the URL of the only
// backend.
func service(a *routing.Action, clusterDomain string) string {
	if a.Forward == nil {
		return "http_status:" + strconv.Itoa(a.Status)
	}
	return a.Forward.Backends[0].Backend.URL(clusterDomain)
}
