// Package ingress renders a routing table as ingress rules for the remote configuration
// of a tunnel, and defines what ingress rules can express.
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

const (
	// serviceNotFound is the service for the rules that end a group.
	serviceNotFound = "http_status:404"
	// serviceClosed is the service for closed hostnames.
	serviceClosed = "http_status:403"
)

// Rule is an ingress rule and the entry that it serves.
type Rule struct {
	Hostname, Path, Service string
	// OriginRequest are the settings for this rule. It is nil when the tunnel settings
	// apply unchanged.
	OriginRequest *provider.OriginRequest
	// Entry is the table entry. It is nil for the 404 rules that end a group, a hostname
	// with separate Access settings, or the configuration, and for the 403 rules of closed
	// hostnames.
	Entry *routing.Entry
	// Namespace is the namespace of the entry's route, or of the listener for a group's
	// 404 and 403 rules. It is empty for the 404 rule that ends the configuration.
	Namespace string
}

// Rules returns the ingress rules for the table, in order, and none for a nil table. A
// request belongs to the group with the most specific hostname and never falls through to
// a less specific group: a 404 rule ends a group. Rules that no request can reach are
// omitted.
//
// The connector enforces access only for rules that contain it, so every entry's rule
// contains the access for its hostname. A hostname that requires other access than the
// wider hostnames in its group has a rule for each entry that covers it, so that its
// requests never reach the rules for a wider hostname. The 404 rules have no origin to
// protect. A closed hostname has one rule with the status 403 instead of all others.
func Rules(t *routing.Table) []Rule { return build(t, nil) }

// build returns the ingress rules for the table. When it omits an entry's rule, it calls
// omit, unless omit is nil, with the entry whose rule comes before it.
func build(t *routing.Table, omit func(omitted, before *routing.Entry)) []Rule {
	if t == nil {
		return nil
	}
	groups, entries := make(map[string]struct{}, len(t.Groups)), 0
	for i := range t.Groups {
		groups[t.Groups[i].Hostname] = struct{}{}
		entries += len(t.Groups[i].Entries)
	}
	b := newBuilder(t, max(len(groups), entries)+1, len(groups)+1)
	b.omit = omit
	separate := routing.SeparateHostnames(groups, t.Access)
	for i := range t.Groups {
		g := &t.Groups[i]
		b.addGroup(g, separate[g.Hostname])
		if t.Access.Of(g.Hostname).IsClosed() {
			b.addClosed(g.Hostname, g.Namespace)
		}
		// Other requests for the hostname must not fall through to a wider group.
		if routing.HasWider(groups, g.Hostname) {
			b.addNotFound(g.Hostname, g.Namespace)
		}
	}
	b.add(Rule{Service: serviceNotFound})
	return b.rules
}

// builder collects ingress rules in order and omits the rules that no request can
// reach.
type builder struct {
	clusterDomain string
	settings      ruleSettings
	rules         []Rule
	omit          func(omitted, before *routing.Entry) // or nil
	// answeredPaths has the index of each rule with a path, by its hostname and path.
	// answeredHostnames has the index of each rule without a path, by its hostname.
	answeredPaths     map[hostnamePath]int
	answeredHostnames map[string]int
}

type hostnamePath struct{ hostname, path string }

func newBuilder(t *routing.Table, rules, hostnames int) *builder {
	return &builder{
		clusterDomain:     t.ClusterDomain,
		settings:          newRuleSettings(t),
		rules:             make([]Rule, 0, rules),
		answeredPaths:     map[hostnamePath]int{},
		answeredHostnames: make(map[string]int, hostnames),
	}
}

// addGroup adds the rules of a group. separate are the hostnames below the group's
// hostname with separate Access settings, in entry order: narrower hostnames first.
func (b *builder) addGroup(g *routing.Group, separate []string) {
	next := 0
	if len(separate) > 0 {
		index := g.Index()
		for _, hostname := range separate {
			for next < len(g.Entries) && routing.CompareRouteHostnames(g.Entries[next].Hostname, hostname) < 0 {
				b.addEntry(g, g.Entries[next], g.Entries[next].Hostname)
				next++
			}
			b.addSeparate(g, hostname, index.EntriesFor(hostname))
		}
	}
	for ; next < len(g.Entries); next++ {
		b.addEntry(g, g.Entries[next], g.Entries[next].Hostname)
	}
}

// addSeparate adds the rules for a hostname with separate Access settings: one for each
// entry that covers it. A request that matches none also does not match the rules for a
// wider hostname, which have the same paths.
func (b *builder) addSeparate(g *routing.Group, hostname string, entries []*routing.Entry) {
	for _, e := range entries {
		b.addEntry(g, e, hostname)
	}
}

func (b *builder) addEntry(g *routing.Group, e *routing.Entry, hostname string) {
	if b.settings.access.Of(hostname).IsClosed() {
		b.addClosed(hostname, g.Namespace)
		return
	}
	b.add(b.entryRule(e, hostname))
}

// addClosed adds the rule that answers all requests for a closed hostname. The rules for the
// hostname that follow it cannot be reached.
func (b *builder) addClosed(hostname, namespace string) {
	b.add(Rule{Hostname: hostname, Service: serviceClosed, Namespace: namespace})
}

func (b *builder) entryRule(e *routing.Entry, hostname string) Rule {
	return Rule{
		Hostname: hostname, Path: pathExpression(e.Match.Path), Service: service(e.Action, b.clusterDomain),
		OriginRequest: b.settings.originRequest(e, hostname), Entry: e, Namespace: e.Source.Route.Namespace,
	}
}

func (b *builder) addNotFound(hostname, namespace string) {
	b.add(Rule{Hostname: hostname, Service: serviceNotFound, Namespace: namespace})
}

func (b *builder) add(rule Rule) {
	if before, ok := b.answers(&rule); ok {
		b.reportOmitted(&rule, before)
		return
	}
	if rule.Path == "" {
		b.answeredHostnames[rule.Hostname] = len(b.rules)
	} else {
		b.answeredPaths[hostnamePath{rule.Hostname, rule.Path}] = len(b.rules)
	}
	b.rules = append(b.rules, rule)
}

// answers returns the index of the earlier rule that answers every request for the rule:
// a rule without a path for the hostname or a wider one, or a rule with the same hostname
// and path. It returns false if there is none.
func (b *builder) answers(rule *Rule) (int, bool) {
	if hostname, ok := routing.MostSpecific(b.answeredHostnames, rule.Hostname); ok {
		return b.answeredHostnames[hostname], true
	}
	if rule.Path == "" {
		return 0, false
	}
	index, ok := b.answeredPaths[hostnamePath{rule.Hostname, rule.Path}]
	return index, ok
}

// reportOmitted calls omit if both rules have an entry. The 404 rules have none.
func (b *builder) reportOmitted(rule *Rule, before int) {
	if b.omit != nil && rule.Entry != nil && b.rules[before].Entry != nil {
		b.omit(rule.Entry, b.rules[before].Entry)
	}
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

// service returns a status, or the URL of the only backend.
func service(a *routing.Action, clusterDomain string) string {
	if a.Forward == nil {
		return "http_status:" + strconv.Itoa(a.Status)
	}
	return a.Forward.Backends[0].Backend.URL(clusterDomain)
}
