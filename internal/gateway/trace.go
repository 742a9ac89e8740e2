package gateway

import (
	"cmp"
	"fmt"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Trace shows how a request finds its ingress rule, and why other rules and
// routes do not answer it.
type Trace struct {
	Request Request
	// Listeners are all listeners whose hostname matches the host of the request,
	// served or not: the most specific hostname first, then in order of
	// precedence.
	Listeners []*Listener
	// Claimants are the listeners to which the request belongs: of the Listeners
	// that claim their hostname, the ones with the most specific hostname, on any
	// port.
	Claimants []*Listener
	// Answer is the index in [Result.Rules] of the rule that answers the request.
	// It is -1 when the Gateway is not accepted and has no rules.
	Answer int
	// Failure is why the rule answers 500, or nil when the rule has a backend.
	Failure *Problem
	// Via are the Claimants through which the route of the rule is attached and
	// that are served.
	Via []*Listener
	// Shadowed are the other matches of attached routes that match the request, in
	// order of precedence.
	Shadowed []ShadowedMatch
	// Unserved are routes that match the request but do not serve it, oldest
	// first.
	Unserved []UnservedRoute
	// Others are routes that are attached to the Claimants but do not match the
	// request, oldest first. There are none when a route answers the request.
	Others []OtherRoute
}

// OtherRoute is a route that does not match the request.
type OtherRoute struct {
	Route *Route
	// Hostnames are the hostnames of the route, when none of them matches.
	Hostnames []string
	// Paths are the path expressions of the route, when a hostname matches.
	Paths []string
}

// ShadowedMatch is a match of a route that matches the request but does not
// answer it.
type ShadowedMatch struct {
	// Rule is the ingress rule of the match.
	Rule Rule
	// Index is the index of the rule in [Result.Rules]. It is -1 when the rule is
	// omitted because another rule shadows it.
	Index int
	// CoveredBy is the index of the rule that shadows an omitted rule, or -1.
	CoveredBy int
	// Reason is why the match does not answer, as a clause about the match.
	Reason string
}

// UnservedRoute is a route that does not serve the request, with the reason.
type UnservedRoute struct {
	Route *Route
	// Parent is the Gateway or the ListenerSet to which the problem applies.
	Parent Owner
	Problem
}

// Trace explains which ingress rule answers the request: the first rule in
// [Result.Rules] that matches it.
func (r *Result) Trace(request Request) *Trace {
	t := &Trace{Request: request, Answer: -1}
	for _, l := range r.Listeners {
		if request.matchesHostname(l.Hostname()) {
			t.Listeners = append(t.Listeners, l)
		}
	}
	slices.SortStableFunc(t.Listeners, func(a, b *Listener) int {
		return groupOrderOf(a.Hostname()).compare(groupOrderOf(b.Hostname()))
	})
	t.Claimants = claimants(t.Listeners)
	candidates := t.matchingCandidates()
	if r.Rejected == nil {
		t.Answer = slices.IndexFunc(r.Rules, func(rule Rule) bool { return request.matchesHostname(rule.Hostname) && request.matchesPath(rule.Path) })
		t.findShadowed(r, candidates)
	}
	for _, route := range r.Routes {
		served := slices.ContainsFunc(candidates, func(c groupCandidate) bool { return c.route == route && c.group == t.Claimants[0].Hostname() })
		t.Unserved = append(t.Unserved, route.unservedAt(t, served)...)
	}
	if t.Answer >= 0 && r.Rules[t.Answer].Route == nil {
		t.findOtherRoutes(r)
	}
	return t
}

// claimants returns the listeners that claim the first hostname with a claim.
// The listeners are in the order of [Trace.Listeners].
func claimants(listeners []*Listener) []*Listener {
	first := slices.IndexFunc(listeners, func(l *Listener) bool { return l.claims })
	if first < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(listeners), func(l *Listener) bool {
		return !l.claims || l.Hostname() != listeners[first].Hostname()
	})
}

// matchingCandidates returns the candidates that match the request, in the order
// of the ingress rules.
func (t *Trace) matchingCandidates() []groupCandidate {
	var matching []groupCandidate
	for _, g := range sortedGroups(hostnameGroups(t.Listeners)) {
		for _, c := range g.appendCandidates(nil) {
			if next := (groupCandidate{g.hostname, c}); next.matches(t.Request) && !slices.ContainsFunc(matching, next.isSameRule) {
				matching = append(matching, next)
			}
		}
	}
	return matching
}

// findShadowed sets t.Failure and t.Via for the candidate that answers, and adds
// the other candidates to t.Shadowed.
func (t *Trace) findShadowed(r *Result, candidates []groupCandidate) {
	answer := &r.Rules[t.Answer]
	t.Failure = answer.failure()
	for _, c := range candidates {
		if c.rendersAs(answer) {
			t.Via = slices.DeleteFunc(slices.Clone(t.Claimants), func(l *Listener) bool { return !l.Serves() || !slices.Contains(l.routes, answer.Route) })
			continue
		}
		shadowed := ShadowedMatch{
			Rule: c.rule(groupSettings{}), Index: slices.IndexFunc(r.Rules, func(rule Rule) bool { return c.rendersAs(&rule) }),
			CoveredBy: -1, Reason: c.shadowReason(t, candidates[0], answer.Route == nil),
		}
		if shadowed.Index < 0 {
			shadowed.CoveredBy = slices.IndexFunc(r.Rules, c.isShadowedBy)
		}
		t.Shadowed = append(t.Shadowed, shadowed)
	}
}

// failure returns why the rule of a route answers 500, or nil.
func (r *Rule) failure() *Problem {
	if r.Route == nil || r.Service != serviceError {
		return nil
	}
	switch action := r.Route.actions[r.RuleIndex]; {
	case len(action.unsupported) > 0:
		dropped := DroppedRule{Rule: r.RuleIndex, Actions: action.unsupported}
		return &Problem{Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: dropped.describe("Rule") + "."}
	case action.unresolved != nil:
		p := action.unresolved
		return &Problem{Reason: p.Reason, Message: fmt.Sprintf("Rule %d answers 500: %s.", r.RuleIndex, p.Message)}
	default:
		return &Problem{Reason: string(gatewayv1.RouteReasonBackendNotFound), Message: fmt.Sprintf("Rule %d answers 500: it has no backend with non-zero weight.", r.RuleIndex)}
	}
}

// groupCandidate is a candidate with the hostname of its group.
type groupCandidate struct {
	group string
	candidate
}

func (c groupCandidate) matches(request Request) bool {
	return request.matchesHostname(c.hostname.served) && request.matchesPath(c.match.path.expression)
}

// isSameRule reports whether both candidates are the same ingress rule. A route
// can have a candidate for each of its hostnames and for each of its listeners.
func (c groupCandidate) isSameRule(other groupCandidate) bool {
	return c.match == other.match && c.hostname.served == other.hostname.served
}

// rendersAs reports whether the ingress rule is the rule of the candidate.
func (c groupCandidate) rendersAs(rule *Rule) bool {
	return c.route == rule.Route && c.match.rule == rule.RuleIndex && c.match.match == rule.MatchIndex && c.hostname.served == rule.Hostname
}

// isShadowedBy reports whether the ingress rule matches every request that the
// candidate matches. Such a candidate is omitted from the ingress rules.
func (c groupCandidate) isShadowedBy(rule Rule) bool {
	return rule.Path == "" && covers(rule.Hostname, c.hostname.served) ||
		rule.Hostname == c.hostname.served && rule.Path == c.match.path.expression
}

// shadowReason returns why the candidate has lower precedence than the winner.
// isolated is whether no route of the request's own hostname answers.
func (c groupCandidate) shadowReason(t *Trace, winner groupCandidate, isolated bool) string {
	if isolated {
		return fmt.Sprintf("the request belongs to the listener of %s and never falls through to %s",
			quoteHostname(t.Claimants[0].Hostname()), quoteHostname(c.group))
	}
	switch {
	case winner.group != c.group:
		return fmt.Sprintf("its listener's hostname, %s, is wider than %s", quoteHostname(c.group), quoteHostname(winner.group))
	case winner.hostname.written != c.hostname.written:
		return fmt.Sprintf("its route's hostname, %s, is wider than %s", quoteHostname(c.hostname.written), quoteHostname(winner.hostname.written))
	case winner.match.method != c.match.method:
		return "its method match is less specific"
	case pathRank(winner.match.path.kind) != pathRank(c.match.path.kind):
		return fmt.Sprintf("path type %s has lower precedence than path type %s", c.match.path.kind, winner.match.path.kind)
	case winner.match.path.length != c.match.path.length:
		return "its path prefix is shorter"
	case winner.route.age != c.route.age:
		return "its route is younger"
	case winner.route != c.route:
		return "its route has the same age and comes later in alphabetical order"
	case winner.match.rule != c.match.rule:
		return "it is a later rule of the same route"
	default:
		return "it is a later match of the same rule"
	}
}

func quoteHostname(hostname string) string {
	if hostname == "" {
		return "the empty hostname (all hosts)"
	}
	return fmt.Sprintf("%q", hostname)
}

// findOtherRoutes adds the routes that are attached to the Claimants but do not
// match the request.
func (t *Trace) findOtherRoutes(r *Result) {
	for _, route := range r.Routes {
		attached := slices.ContainsFunc(t.Claimants, func(l *Listener) bool { return slices.Contains(l.routes, route) })
		if attached && !slices.ContainsFunc(t.Unserved, func(u UnservedRoute) bool { return u.Route == route }) {
			t.Others = append(t.Others, route.otherRoute(t.Request))
		}
	}
}

// otherRoute returns the hostnames or the paths of the route that do not match
// the request.
func (r *Route) otherRoute(request Request) OtherRoute {
	other := OtherRoute{Route: r}
	if !r.coversHost(request) {
		for _, hostname := range r.Hostnames {
			other.Hostnames = append(other.Hostnames, string(hostname))
		}
		return other
	}
	for i := range r.Rules {
		for _, match := range matchesOf(&r.Rules[i]) {
			if path, err := newPathMatch(match.Path); err == nil && !slices.Contains(other.Paths, path.expression) {
				other.Paths = append(other.Paths, path.expression)
			}
		}
	}
	return other
}

// coversHost reports whether the hostnames of the route match the host of the
// request.
func (r *Route) coversHost(request Request) bool {
	return len(r.Hostnames) == 0 || slices.ContainsFunc(r.Hostnames, func(h gatewayv1.Hostname) bool { return request.matchesHostname(string(h)) })
}

// unservedAt returns, for each parent, why the route does not serve the request
// although it matches. For a route that serves the request, it returns only the
// omitted matches.
func (r *Route) unservedAt(t *Trace, served bool) []UnservedRoute {
	if !r.coversHost(t.Request) || !r.mayMatch(t.Request) {
		return nil
	}
	var all []UnservedRoute
	for i := range r.Parents {
		parent := &r.Parents[i]
		var problems []Problem
		if !served {
			problems = r.parentProblems(parent, t)
		}
		if slices.ContainsFunc(parent.Listeners, func(l *Listener) bool { return slices.Contains(t.Claimants, l) }) {
			problems = append(problems, r.omittedMatchProblems(t.Request)...)
		}
		for _, problem := range problems {
			if next := (UnservedRoute{Route: r, Parent: parent.Owner, Problem: problem}); !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// parentProblems returns why the route does not serve the request through one
// parent: the parent does not accept the route, the route has another hostname
// there, or the listeners are not served. It ignores listeners whose hostname is
// less specific than that of the Claimants, because the request does not belong
// to them.
func (r *Route) parentProblems(parent *Parent, t *Trace) []Problem {
	if p := parent.Rejected; p != nil && p.Reason != string(gatewayv1.RouteReasonUnsupportedValue) {
		return []Problem{*p}
	}
	var problems []Problem
	selected := false
	for _, l := range t.Listeners {
		if l.Owner != parent.Owner || !selects(parent.Ref, l) {
			continue
		}
		selected = true
		if len(t.Claimants) > 0 && groupOrderOf(t.Claimants[0].Hostname()).compare(groupOrderOf(l.Hostname())) < 0 {
			continue
		}
		switch p := cmp.Or(l.Rejected, l.Unresolved); {
		case !slices.Contains(parent.Listeners, l):
			problems = append(problems, *r.problemAtStep(r.attachmentStep(l, parent.Ref), parent, []*Listener{l}))
		case p != nil:
			problems = append(problems, Problem{Reason: p.Reason, Message: fmt.Sprintf("Listener %q: %s", l.Spec.Name, p.Message)})
		}
	}
	if !selected && len(r.Hostnames) > 0 {
		return []Problem{{
			Reason:  string(gatewayv1.RouteReasonNoMatchingListenerHostname),
			Message: "The route is attached with another hostname; no listener of this parent matches the requested hostname.",
		}}
	}
	return problems
}

// mayMatch reports whether a match of the route matches the path of the request,
// or could match it but is omitted.
func (r *Route) mayMatch(request Request) bool {
	return slices.ContainsFunc(r.matches, func(m ruleMatch) bool { return request.matchesPath(m.path.expression) }) || len(r.omittedMatchProblems(request)) > 0
}

// omittedMatchProblems returns a problem for each omitted match that matches the
// path of the request, or whose path an ingress rule cannot express.
func (r *Route) omittedMatchProblems(request Request) []Problem {
	var problems []Problem
	for i := range r.Rules {
		for j, match := range matchesOf(&r.Rules[i]) {
			path, err := newPathMatch(match.Path)
			if _, fields := translateMatch(match); len(fields) > 0 && (err != nil || request.matchesPath(path.expression)) {
				dropped := DroppedRule{Rule: i, Matches: []OmittedMatch{{Match: j, Fields: fields}}}
				problems = append(problems, Problem{Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: dropped.describe("Rule") + "."})
			}
		}
	}
	return problems
}
