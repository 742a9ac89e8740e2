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
	// Number is that of the route's rule, and Match that of its match.
	Number, Match int
}

// IngressRule returns the rule as the document has it.
func (r *Rule) IngressRule() provider.IngressRule {
	rule := provider.IngressRule{Hostname: r.Hostname, Path: r.Path, Service: r.Service}
	if r.OriginRequest != nil {
		rule.OriginRequest = *r.OriginRequest
	}
	return rule
}

// answer is what a rule of a route answers with.
type answer struct {
	service     string
	unsupported []string // what it asks to be done and a tunnel cannot do
	broken      *Problem // with the first backend that would get traffic
}

// answer returns what the route's rule of that number answers, and which of its
// backendRefs do not resolve. "If *all* entries in BackendRefs are invalid, and
// there are also no filters specified in this route rule, *all* traffic which
// matches this rule MUST receive a 500 status code."
// (HTTPRouteRule.BackendRefs)
//
// A backend of weight 0 gets no traffic, so whether it resolves matters only
// for the route's condition.
func (r backendResolver) answer(route *Route, number int) (answer, []*Problem) {
	rule := &route.Rules[number]
	a := answer{service: serviceError, unsupported: unsupportedActions(rule)}
	var problems []*Problem
	var serving origin
	served := 0
	for i, backend := range rule.BackendRefs {
		found, problem := r.origin(backend.BackendObjectReference, route)
		if problem != nil {
			problems = append(problems, &Problem{Reason: problem.Reason, Message: fmt.Sprintf("Rule %d, backendRef %d: %s.", number, i, problem.Message)})
		}
		if weight(backend) != 0 {
			serving = found
			served++
			a.broken = cmp.Or(a.broken, problem)
		}
	}
	if a.broken != nil || served == 0 {
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
	out := newDocument(len(groups))
	var candidates []candidate // one buffer for all groups
	for _, g := range sortedGroups(groups) {
		candidates = g.appendCandidates(candidates[:0])
		own := settings.of(g.hostname)
		for i := range candidates {
			out.add(candidates[i].rule(own))
		}
		// What the group does not serve must not fall through to a wider one.
		if widerIn(groups, g.hostname) {
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
			g = &group{hostname: l.Hostname(), order: orderOf(l.Hostname())}
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

// widerIn reports whether the map has a hostname that covers this one besides
// itself.
func widerIn[V any](hostnames map[string]V, hostname string) bool {
	for wide := range wider(hostname) {
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
		for hostname := range route.hostnamesOn(g.hostname) {
			for i := range route.matches {
				buffer = append(buffer, candidate{route, &route.matches[i], hostname})
			}
		}
	}
	slices.SortStableFunc(buffer, compareCandidates)
	return buffer
}

func (c *candidate) rule(settings groupSettings) Rule {
	a := &c.route.answers[c.match.rule]
	return Rule{
		Hostname: c.hostname.served, Path: c.match.path.expression,
		Service: a.service, OriginRequest: settings.originRequest(c.route, a),
		Route: c.route, Number: c.match.rule, Match: c.match.match,
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

// document collects rules from the top and leaves out those that no request
// can reach.
type document struct {
	rules []Rule
	// paths are the rules with a path; whole are the hostnames that a rule
	// without one answers altogether.
	paths map[hostnamePath]struct{}
	whole map[string]struct{}
}

type hostnamePath struct{ hostname, path string }

func newDocument(capacity int) *document {
	return &document{
		rules: make([]Rule, 0, capacity),
		paths: map[hostnamePath]struct{}{},
		whole: make(map[string]struct{}, capacity),
	}
}

func (d *document) add(rule Rule) {
	if d.answered(rule.Hostname) {
		return
	}
	key := hostnamePath{rule.Hostname, rule.Path}
	if _, ok := d.paths[key]; ok {
		return
	}
	if rule.Path == "" {
		d.whole[rule.Hostname] = struct{}{}
	} else {
		d.paths[key] = struct{}{}
	}
	d.rules = append(d.rules, rule)
}

// answered reports whether an earlier rule without a path takes every request
// for the hostname.
func (d *document) answered(hostname string) bool {
	_, ok := d.whole[hostname]
	return ok || widerIn(d.whole, hostname)
}
