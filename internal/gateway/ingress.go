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

// Rule is an ingress rule and the match of a route that it serves.
type Rule struct {
	Hostname, Path, Service string
	// OriginRequest are the settings of this rule. It is nil when the settings of
	// the tunnel apply unchanged.
	OriginRequest *provider.OriginRequest
	// Route is the route of the rule. It is nil for the 404 rules at the end of a
	// group and at the end of the configuration.
	Route *Route
	// RuleIndex is the index of the rule in the route, and MatchIndex the index of
	// the match in that rule.
	RuleIndex, MatchIndex int
}

// IngressRule returns the rule in the form of the tunnel configuration.
func (r *Rule) IngressRule() provider.IngressRule {
	rule := provider.IngressRule{Hostname: r.Hostname, Path: r.Path, Service: r.Service}
	if r.OriginRequest != nil {
		rule.OriginRequest = *r.OriginRequest
	}
	return rule
}

// ruleAction is the answer of a rule of a route.
type ruleAction struct {
	service     string
	unsupported []string // the actions that an ingress rule cannot express
	unresolved  *Problem // of the first backend with a non-zero weight that does not resolve
}

// action returns the action of a rule of the route, and the problems of the
// backendRefs that do not resolve: "If *all* entries in BackendRefs are invalid,
// and there are also no filters specified in this route rule, *all* traffic
// which matches this rule MUST receive a 500 status code."
// (HTTPRouteRule.BackendRefs)
//
// A backend of weight 0 receives no requests, so it affects only the ResolvedRefs
// condition of the route.
func (r backendResolver) action(route *Route, index int) (ruleAction, []*Problem) {
	rule := &route.Rules[index]
	a := ruleAction{service: serviceError, unsupported: unsupportedActions(rule)}
	var problems []*Problem
	var target origin
	weighted := 0
	for i, backend := range rule.BackendRefs {
		found, problem := r.resolve(backend.BackendObjectReference, route)
		if problem != nil {
			problems = append(problems, &Problem{Reason: problem.Reason, Message: fmt.Sprintf("Rule %d, backendRef %d: %s.", index, i, problem.Message)})
		}
		if weight(backend) != 0 {
			target = found
			weighted++
			a.unresolved = cmp.Or(a.unresolved, problem)
		}
	}
	if a.unresolved != nil || weighted == 0 {
		return a, problems
	}
	if route.Kind == KindGRPCRoute && target.scheme != "https" {
		a.unsupported = append(a.unsupported, "gRPC to a backend without TLS")
	}
	if len(a.unsupported) == 0 {
		a.service = target.url
	}
	return a, problems
}

// group contains the routes of all listeners with one hostname.
type group struct {
	hostname string
	order    groupOrder
	routes   []*Route
}

// ingressRules renders the ingress rules of the listeners. A request belongs to
// the most specific listener hostname that matches it and never falls through to
// a less specific listener: the groups are in this order, and a 404 rule ends a
// group.
//
// The connector enforces access only for rules that contain it, so every rule of
// a route contains the access that its listener's hostname requires. The 404
// rules have no origin to protect.
func ingressRules(listeners []*Listener, settings ruleSettings) []Rule {
	groups := hostnameGroups(listeners)
	builder := newRuleBuilder(len(groups))
	var candidates []candidate // one buffer for all groups
	for _, g := range sortedGroups(groups) {
		candidates = g.appendCandidates(candidates[:0])
		forGroup := settings.forHostname(g.hostname)
		for i := range candidates {
			builder.add(candidates[i].rule(forGroup))
		}
		// Other requests for the hostname must not fall through to a wider group.
		if hasWiderHostname(groups, g.hostname) {
			builder.add(Rule{Hostname: g.hostname, Service: serviceNotFound})
		}
	}
	builder.add(Rule{Service: serviceNotFound})
	return builder.rules
}

// hostnameGroups groups the listeners by hostname. The listeners of a group have
// the same owner and can have different ports, which a tunnel does not
// distinguish. A listener that claims its hostname but is not served still
// creates a group.
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
			g.routes = l.routes // avoids a copy: most hostnames have one listener
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

// hasWiderHostname reports whether the map contains another hostname that covers
// this hostname.
func hasWiderHostname[V any](hostnames map[string]V, hostname string) bool {
	for wide := range widerHostnames(hostname) {
		if _, ok := hostnames[wide]; ok {
			return true
		}
	}
	return false
}

// candidate is a possible ingress rule of a group, with the data that decides its
// position.
type candidate struct {
	route    *Route
	match    *ruleMatch
	hostname servedHostname
}

// appendCandidates appends the candidates of the group in order. A route that is
// attached to several listeners of the group appears once for each of them. The
// [ruleBuilder] omits the duplicates.
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

// compareCandidates orders candidates by the hostname in the route, not by the
// intersection (GatewayRouteHostnameIntersectionPrecedence). Then, as
// HTTPRouteRule.Matches requires, it orders Exact paths before prefixes, longer
// prefixes before shorter prefixes, older routes before younger routes, names
// alphabetically, and the rules and matches of one route by position.
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

// ruleBuilder collects ingress rules in order and omits the rules that no request
// can reach.
type ruleBuilder struct {
	rules []Rule
	// answeredPaths has the hostname and path of each rule with a path.
	// answeredHostnames has the hostname of each rule without a path.
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

func (b *ruleBuilder) add(rule Rule) {
	if b.isAnswered(rule.Hostname) {
		return
	}
	key := hostnamePath{rule.Hostname, rule.Path}
	if _, ok := b.answeredPaths[key]; ok {
		return
	}
	if rule.Path == "" {
		b.answeredHostnames[rule.Hostname] = struct{}{}
	} else {
		b.answeredPaths[key] = struct{}{}
	}
	b.rules = append(b.rules, rule)
}

// isAnswered reports whether an earlier rule without a path matches every request
// for the hostname.
func (b *ruleBuilder) isAnswered(hostname string) bool {
	_, ok := b.answeredHostnames[hostname]
	return ok || hasWiderHostname(b.answeredHostnames, hostname)
}
