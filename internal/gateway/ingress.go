package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	serviceNotFound = "http_status:404"
	serviceError    = "http_status:500"
)

// Rule is an ingress rule and where it comes from.
type Rule struct {
	Hostname, Path, Service string
	// OriginRequest is nil when the tunnel's own settings do.
	OriginRequest *provider.OriginRequest
	// Route is nil for a rule of no route: the end of a group, or of all.
	Route *Route
	// RuleIndex is that of the route's rule, and Match that of its match.
	RuleIndex, MatchIndex int
}

// IngressRule returns the rule as the document has it.
func (r *Rule) IngressRule() provider.IngressRule {
	rule := provider.IngressRule{Hostname: r.Hostname, Path: r.Path, Service: r.Service}
	if r.OriginRequest != nil {
		rule.OriginRequest = *r.OriginRequest
	}
	return rule
}

// ruleAction is what a rule of a route answers with.
type ruleAction struct {
	service     string
	unsupported []string // what it asks to be done and a tunnel cannot do
	unresolved  *Problem // with the first backend that would get traffic
}

// action returns what the route's rule of that number answers, and which of its
// backendRefs do not resolve. "If *all* entries in BackendRefs are invalid, and
// there are also no filters specified in this route rule, *all* traffic which
// matches this rule MUST receive a 500 status code."
// (HTTPRouteRule.BackendRefs)
//
// A backend of weight 0 gets no traffic, so whether it resolves matters only
// for the route's condition.
func (r backendResolver) action(route *Route, number int) (ruleAction, []*Problem) {
	rule := &route.Rules[number]
	a := ruleAction{service: serviceError, unsupported: unsupportedActions(rule)}
	var problems []*Problem
	var serving origin
	served := 0
	for i, backend := range rule.BackendRefs {
		found, problem := r.resolve(backend.BackendObjectReference, route)
		if problem != nil {
			problems = append(problems, &Problem{Reason: problem.Reason, Message: fmt.Sprintf("Rule %d, backendRef %d: %s.", number, i, problem.Message)})
		}
		if weight(backend) != 0 {
			serving = found
			served++
			a.unresolved = cmp.Or(a.unresolved, problem)
		}
	}
	if a.unresolved != nil || served == 0 {
		return a, problems
	}
	if route.Kind == KindGRPCRoute && serving.scheme != "https" {
		a.unsupported = append(a.unsupported, "gRPC to a backend without TLS")
	}
	if len(a.unsupported) == 0 {
		a.service = serving.url
	}
	return a, problems
}

// group is what one hostname of the table serves.
type group struct {
	hostname string
	order    groupOrder
	routes   []*Route
}

// ingressRules renders the table. A request belongs to the most specific
// listener hostname that matches it, and never to a less specific one, which
// is the order of the groups and the rule that ends a group.
//
// The connector enforces access in a rule's own block only, so every rule of a
// route has what its listener's hostname demands. A rule of no route has
// nothing to protect.
func ingressRules(listeners []*Listener, settings ruleSettings) []Rule {
	groups := hostnameGroups(listeners)
	out := newRuleBuilder(len(groups))
	var candidates []candidate // one buffer for all groups
	for _, g := range sortedGroups(groups) {
		candidates = g.appendCandidates(candidates[:0])
		own := settings.forHostname(g.hostname)
		for i := range candidates {
			out.add(candidates[i].rule(own))
		}
		// What the group does not serve must not fall through to a wider one.
		if hasWiderHostname(groups, g.hostname) {
			out.add(Rule{Hostname: g.hostname, Service: serviceNotFound})
		}
	}
	out.add(Rule{Service: serviceNotFound})
	return out.rules
}

// hostnameGroups gathers the listeners of one hostname, which all have the
// same owner: a tunnel cannot tell ports apart. A listener that holds its place
// without serving makes a group that stays empty.
func hostnameGroups(listeners []*Listener) map[string]*group {
	groups := make(map[string]*group, len(listeners))
	for _, l := range listeners {
		if !l.claims {
			continue
		}
		g := groups[l.Hostname()]
		if g == nil {
			g = &group{hostname: l.Hostname(), order: groupOrderOf(l.Hostname())}
			groups[g.hostname] = g
		}
		switch {
		case !l.Serves():
		case g.routes == nil:
			g.routes = l.routes // most hostnames have one listener
		default:
			g.routes = slices.Concat(g.routes, l.routes)
		}
	}
	return groups
}

func sortedGroups(groups map[string]*group) []*group {
	return slices.SortedFunc(maps.Values(groups), func(a, b *group) int {
		if order := a.order.compare(b.order); order != 0 {
			return order
		}
		return strings.Compare(a.hostname, b.hostname)
	})
}

// hasWiderHostname reports whether the map has a hostname that covers this one besides
// itself.
func hasWiderHostname[V any](hostnames map[string]V, hostname string) bool {
	for wide := range widerHostnames(hostname) {
		if _, ok := hostnames[wide]; ok {
			return true
		}
	}
	return false
}

// candidate is a rule of a group, with what decides its place.
type candidate struct {
	route    *Route
	match    *ruleMatch
	hostname servedHostname
}

// appendCandidates appends the group's rules in order. A route that several
// listeners of the group took gives each rule several times; what comes second
// is never reached and left out by the document.
func (g *group) appendCandidates(buffer []candidate) []candidate {
	for _, route := range g.routes {
		for hostname := range route.hostnamesOnListener(g.hostname) {
			for i := range route.matches {
				buffer = append(buffer, candidate{route, &route.matches[i], hostname})
			}
		}
	}
	slices.SortStableFunc(buffer, compareCandidates)
	return buffer
}

func (c *candidate) rule(settings groupSettings) Rule {
	a := &c.route.actions[c.match.rule]
	return Rule{
		Hostname: c.hostname.served, Path: c.match.path.expression,
		Service: a.service, OriginRequest: settings.originRequest(c.route, a),
		Route: c.route, RuleIndex: c.match.rule, MatchIndex: c.match.match,
	}
}

// compareCandidates: the hostname as the route wrote it, not the intersection
// (GatewayRouteHostnameIntersectionPrecedence); then, as HTTPRouteRule.Matches
// demands, Exact paths before prefixes and longer prefixes before shorter ones,
// older routes before younger ones, names by the alphabet, and within a route
// the first in the list.
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		compareSpecificity(a.hostname.written, b.hostname.written),
		compareMethods(a.match.method, b.match.method),
		comparePaths(a.match.path, b.match.path),
		cmp.Compare(a.route.rank, b.route.rank),
		cmp.Compare(a.match.rule, b.match.rule),
		cmp.Compare(a.match.match, b.match.match),
	)
}

// ruleBuilder collects rules from the top and leaves out those that no request
// can reach.
type ruleBuilder struct {
	rules []Rule
	// answeredPaths are the rules with a path; whole are the hostnames that a rule
	// without one answers altogether.
	answeredPaths     map[hostnamePath]struct{}
	answeredHostnames map[string]struct{}
}

type hostnamePath struct{ hostname, path string }

func newRuleBuilder(capacity int) *ruleBuilder {
	return &ruleBuilder{
		rules:             make([]Rule, 0, capacity),
		answeredPaths:     map[hostnamePath]struct{}{},
		answeredHostnames: make(map[string]struct{}, capacity),
	}
}

func (d *ruleBuilder) add(rule Rule) {
	if d.isAnswered(rule.Hostname) {
		return
	}
	key := hostnamePath{rule.Hostname, rule.Path}
	if _, ok := d.answeredPaths[key]; ok {
		return
	}
	if rule.Path == "" {
		d.answeredHostnames[rule.Hostname] = struct{}{}
	} else {
		d.answeredPaths[key] = struct{}{}
	}
	d.rules = append(d.rules, rule)
}

// isAnswered reports whether an earlier rule without a path takes every request
// for the hostname.
func (d *ruleBuilder) isAnswered(hostname string) bool {
	_, ok := d.answeredHostnames[hostname]
	return ok || hasWiderHostname(d.answeredHostnames, hostname)
}
