package gateway

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	serviceNotFound = "http_status:404"
	serviceError    = "http_status:500"
)

// Rule is an ingress rule and where it comes from.
type Rule struct {
	provider.IngressRule
	// Route is nil for a rule of no route: the end of a group, or of all.
	Route *Route
	// Number is that of the route's rule, and Match that of its match.
	Number, Match int
}

// answer is what a rule of a route answers with.
type answer struct {
	service       string
	originRequest provider.OriginRequest
	unsupported   []string // what it asks to be done and a tunnel cannot do
}

// answer returns what the route's rule of that number answers, and which of its
// backendRefs do not resolve. "If all entries in BackendRefs are invalid, and
// there are also no filters specified in this route rule, all traffic which
// matches this rule MUST receive a 500 status code."
// (HTTPRouteRule.BackendRefs)
//
// A backend of weight 0 gets no traffic, so whether it resolves matters only
// for the route's condition.
func (r backendResolver) answer(route *Route, number int) (answer, []*Problem) {
	rule := &route.Rules[number]
	a := answer{service: serviceError, unsupported: unsupportedActions(rule)}
	var problems []*Problem
	var serving []origin
	broken := false
	for i, backend := range rule.BackendRefs {
		found, problem := r.origin(backend.BackendObjectReference, route)
		if problem != nil {
			problems = append(problems, &Problem{problem.Reason, fmt.Sprintf("Rule %d, backendRef %d: %s.", number, i, problem.Message)})
		}
		if weight(backend) != 0 {
			serving = append(serving, found)
			broken = broken || problem != nil
		}
	}
	if broken || len(serving) == 0 {
		return a, problems
	}
	if route.Kind == KindGRPCRoute && serving[0].scheme != "https" {
		a.unsupported = append(a.unsupported, "gRPC to a backend without TLS")
	}
	if len(a.unsupported) == 0 {
		a.service = serving[0].url()
		a.originRequest = originRequest(route.Kind)
	}
	return a, problems
}

// originRequest returns what a connector needs to know to reach the origin of a
// route of the kind: gRPC is HTTP/2.
func originRequest(kind string) provider.OriginRequest {
	if kind == KindGRPCRoute {
		return provider.OriginRequest{HTTP2Origin: ptr.To(true)}
	}
	return provider.OriginRequest{}
}

// group is what one hostname of the table serves.
type group struct {
	hostname string
	routes   []*Route
}

// ingressRules renders the table. A request belongs to the most specific
// listener hostname that matches it, "and never to a less specific one"
// (listener isolation), which is the order of the groups and the rule that
// ends a group.
func ingressRules(listeners []*Listener) []Rule {
	groups := hostnameGroups(listeners)
	exists := make(map[string]bool, len(groups))
	for _, g := range groups {
		exists[g.hostname] = true
	}
	var out document
	for _, g := range groups {
		for _, rule := range g.rules() {
			out.add(rule)
		}
		// What the group does not serve must not fall through to a wider one.
		if widerIn(exists, g.hostname) {
			out.add(Rule{IngressRule: provider.IngressRule{Hostname: g.hostname, Service: serviceNotFound}})
		}
	}
	out.add(Rule{IngressRule: provider.IngressRule{Service: serviceNotFound}})
	return out.rules
}

// hostnameGroups gathers the listeners of one hostname, which all have the
// same owner: a tunnel cannot tell ports apart. A listener that holds its place
// without serving makes a group that stays empty.
func hostnameGroups(listeners []*Listener) []*group {
	byHostname := map[string]*group{}
	var groups []*group
	for _, l := range listeners {
		if !l.holds {
			continue
		}
		g := byHostname[l.Hostname()]
		if g == nil {
			g = &group{hostname: l.Hostname()}
			byHostname[g.hostname] = g
			groups = append(groups, g)
		}
		g.routes = append(g.routes, l.routes...)
	}
	slices.SortFunc(groups, func(a, b *group) int { return compareGroups(a.hostname, b.hostname) })
	return groups
}

// widerIn reports whether the set has a hostname that covers this one besides
// itself.
func widerIn(set map[string]bool, hostname string) bool {
	for wide := range wider(hostname) {
		if set[wide] {
			return true
		}
	}
	return false
}

// candidate is a rule with what decides its place in the group.
type candidate struct {
	Rule
	written string
	path    pathMatch
}

// rules returns the group's rules in order. A route that several listeners of
// the group took gives each rule several times; what comes second is never
// reached and left out by the document.
func (g *group) rules() []Rule {
	var candidates []candidate
	for _, route := range g.routes {
		for _, hostname := range route.hostnamesOn(g.hostname) {
			for _, m := range route.matches {
				candidates = append(candidates, newCandidate(route, hostname, m))
			}
		}
	}
	slices.SortStableFunc(candidates, compareCandidates)
	rules := make([]Rule, len(candidates))
	for i := range candidates {
		rules[i] = candidates[i].Rule
	}
	return rules
}

func newCandidate(route *Route, hostname servedHostname, m ruleMatch) candidate {
	a := route.answers[m.rule]
	return candidate{
		Rule: Rule{
			IngressRule: provider.IngressRule{
				Hostname: hostname.served, Path: m.path.expression, Service: a.service, OriginRequest: a.originRequest,
			},
			Route: route, Number: m.rule, Match: m.match,
		},
		written: hostname.written,
		path:    m.path,
	}
}

// compareCandidates: the hostname as the route wrote it, not the intersection
// (GatewayRouteHostnameIntersectionPrecedence); then, from HTTPRouteRule.Matches,
// ""Exact" path match. "Prefix" path match with largest number of characters",
// "the oldest Route", "alphabetical order by "{namespace}/{name}"", "the FIRST
// matching rule (in list order)".
func compareCandidates(a, b candidate) int {
	return cmp.Or(
		compareSpecificity(a.written, b.written),
		comparePaths(a.path, b.path),
		cmp.Compare(a.Route.rank, b.Route.rank),
		cmp.Compare(a.Number, b.Number),
		cmp.Compare(a.Match, b.Match),
	)
}

// document collects rules from the top and leaves out those that no request
// can reach.
type document struct {
	rules []Rule
	// seen are the rules' hostname and path; whole those hostnames whose every
	// request is answered.
	seen  map[[2]string]bool
	whole map[string]bool
}

func (d *document) add(rule Rule) {
	if d.seen == nil {
		d.seen, d.whole = map[[2]string]bool{}, map[string]bool{}
	}
	key := [2]string{rule.Hostname, rule.Path}
	if d.seen[key] || d.answered(rule.Hostname) {
		return
	}
	d.seen[key] = true
	if rule.Path == "" {
		d.whole[rule.Hostname] = true
	}
	d.rules = append(d.rules, rule)
}

// answered reports whether an earlier rule without a path takes every request
// for the hostname.
func (d *document) answered(hostname string) bool {
	return d.whole[hostname] || widerIn(d.whole, hostname)
}
