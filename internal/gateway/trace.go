package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Trace is the way of a request through the hostname table to the rule that
// answers it, with all that might have answered it instead.
type Trace struct {
	Request Request
	// Listeners are those whose hostname covers the request's host, whatever
	// their state: the most specific hostname first, then in order of
	// precedence.
	Listeners []*Listener
	// Claimants are those among them that the request belongs to: the ones that
	// hold the most specific hostname, on whatever port.
	Claimants []*Listener
	// Answer is the place in [Result.Rules] of the rule that answers, or -1
	// when the Gateway is not accepted and so has no rules.
	Answer int
	// Failure says why that rule answers with an error in the place of a backend;
	// nil when it does not.
	Failure *Problem
	// Via are the holders by which the route of that rule attached, but for
	// those that are not in effect.
	Via []*Listener
	// Shadowed are the matches of attached routes that the request meets too, the
	// next one first.
	Shadowed []ShadowedMatch
	// Unserved are routes that mean the request, and that are not in effect for
	// it, oldest first.
	Unserved []UnservedRoute
	// Others are routes that attached at the holders and answer other requests
	// than this one, oldest first; of a request that a route answers there are
	// none.
	Others []OtherRoute
}

// OtherRoute is a route that the request misses.
type OtherRoute struct {
	Route *Route
	// Hostnames are those that the route names, when none is the request's.
	Hostnames []string
	// Paths are the expressions that its matches ask for, when its hostname is.
	Paths []string
}

// ShadowedMatch is a match that the request meets and that does not answer it.
type ShadowedMatch struct {
	// Rule is what it would be in the document.
	Rule Rule
	// Index is that in [Result.Rules], or -1 when it is not there, because
	// another rule hides it.
	Index int
	// CoveredBy is the place of a rule that takes all that this one could take,
	// or -1.
	CoveredBy int
	// Reason says what decided, as half a sentence about the one that is
	// beaten.
	Reason string
}

// UnservedRoute is a route that does not take part, and why.
type UnservedRoute struct {
	Route *Route
	// Parent is the Gateway or ListenerSet where it does not.
	Parent Owner
	Problem
}

// Trace follows a request. It says of the document what [Result.Rules] says: the
// first rule that matches answers.
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
	met := t.matchingCandidates()
	if r.Rejected == nil {
		t.Answer = slices.IndexFunc(r.Rules, func(rule Rule) bool { return request.matchesHostname(rule.Hostname) && request.matchesPath(rule.Path) })
		t.findShadowed(r, met)
	}
	for _, route := range r.Routes {
		takesPart := slices.ContainsFunc(met, func(e groupCandidate) bool { return e.route == route && e.group == t.Claimants[0].Hostname() })
		t.Unserved = append(t.Unserved, route.unservedAt(t, takesPart)...)
	}
	if t.Answer >= 0 && r.Rules[t.Answer].Route == nil {
		t.findOtherRoutes(r)
	}
	return t
}

// claimants returns those of the first hostname that is held at all.
func claimants(covering []*Listener) []*Listener {
	first := slices.IndexFunc(covering, func(l *Listener) bool { return l.claims })
	if first < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(covering), func(l *Listener) bool {
		return !l.claims || l.Hostname() != covering[first].Hostname()
	})
}

// matchingCandidates returns the candidates for the request among all that the table
// serves, in the order of the document.
func (t *Trace) matchingCandidates() []groupCandidate {
	var met []groupCandidate
	for _, g := range sortedGroups(hostnameGroups(t.Listeners)) {
		for _, c := range g.appendCandidates(nil) {
			if next := (groupCandidate{g.hostname, c}); next.matches(t.Request) && !slices.ContainsFunc(met, next.isSameRule) {
				met = append(met, next)
			}
		}
	}
	return met
}

// findShadowed says of each candidate what came of it.
func (t *Trace) findShadowed(r *Result, met []groupCandidate) {
	answer := &r.Rules[t.Answer]
	t.Failure = answer.failure()
	for _, e := range met {
		if e.rendersAs(answer) {
			t.Via = slices.DeleteFunc(slices.Clone(t.Claimants), func(l *Listener) bool { return !l.Serves() || !slices.Contains(l.routes, answer.Route) })
			continue
		}
		b := ShadowedMatch{
			Rule: e.rule(groupSettings{}), Index: slices.IndexFunc(r.Rules, func(rule Rule) bool { return e.rendersAs(&rule) }),
			CoveredBy: -1, Reason: e.shadowReason(t, met[0], answer.Route == nil),
		}
		if b.Index < 0 {
			b.CoveredBy = slices.IndexFunc(r.Rules, e.isShadowedBy)
		}
		t.Shadowed = append(t.Shadowed, b)
	}
}

// failure says why a rule of a route answers with an error, or nothing.
func (r *Rule) failure() *Problem {
	switch {
	case r.Route == nil || r.Service != serviceError:
		return nil
	case len(r.Route.actions[r.RuleIndex].unsupported) > 0:
		return &Problem{Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: fmt.Sprintf(
			"Rule %d asks for what a tunnel cannot do: %s.", r.RuleIndex, strings.Join(r.Route.actions[r.RuleIndex].unsupported, ", "))}
	case r.Route.actions[r.RuleIndex].unresolved != nil:
		p := r.Route.actions[r.RuleIndex].unresolved
		return &Problem{Reason: p.Reason, Message: fmt.Sprintf("Rule %d: %s.", r.RuleIndex, p.Message)}
	default:
		return &Problem{Reason: string(gatewayv1.RouteReasonBackendNotFound), Message: fmt.Sprintf("Rule %d has no backend of a weight above 0.", r.RuleIndex)}
	}
}

// groupCandidate is a candidate with the hostname of its group.
type groupCandidate struct {
	group string
	candidate
}

func (e groupCandidate) matches(request Request) bool {
	return request.matchesHostname(e.hostname.served) && request.matchesPath(e.match.path.expression)
}

// isSameRule reports whether both are one rule: a route can meet the request by
// several listeners and by several of its hostnames.
func (e groupCandidate) isSameRule(other groupCandidate) bool {
	return e.match == other.match && e.hostname.served == other.hostname.served
}

func (e groupCandidate) rendersAs(rule *Rule) bool {
	return e.route == rule.Route && e.match.rule == rule.RuleIndex && e.match.match == rule.MatchIndex && e.hostname.served == rule.Hostname
}

// isShadowedBy reports whether the rule takes every request that this one could,
// which is why the document leaves it out.
func (e groupCandidate) isShadowedBy(rule Rule) bool {
	return rule.Path == "" && covers(rule.Hostname, e.hostname.served) ||
		rule.Hostname == e.hostname.served && rule.Path == e.match.path.expression
}

// shadowReason says why the entrant comes after the winner; ended is whether the
// request's own hostname has none.
func (e groupCandidate) shadowReason(t *Trace, winner groupCandidate, ended bool) string {
	if ended {
		return fmt.Sprintf("the request belongs to the listener of %s and never falls through to %s",
			quoteHostname(t.Claimants[0].Hostname()), quoteHostname(e.group))
	}
	a, b := winner, e
	switch {
	case a.group != b.group:
		return fmt.Sprintf("its listener's hostname, %s, is wider than %s", quoteHostname(b.group), quoteHostname(a.group))
	case a.hostname.written != b.hostname.written:
		return fmt.Sprintf("the route's hostname, %s, is wider than %s", quoteHostname(b.hostname.written), quoteHostname(a.hostname.written))
	case a.match.method != b.match.method:
		return "its method match says less"
	case pathRank(a.match.path.kind) != pathRank(b.match.path.kind):
		return fmt.Sprintf("a path match of type %s goes after one of type %s", b.match.path.kind, a.match.path.kind)
	case a.match.path.length != b.match.path.length:
		return "its path prefix is shorter"
	case a.route.age != b.route.age:
		return "its route is younger"
	case a.route != b.route:
		return "its route is as old, and later by the alphabet"
	case a.match.rule != b.match.rule:
		return "it is a later rule of the same route"
	default:
		return "it is a later match of the same rule"
	}
}

func quoteHostname(hostname string) string {
	if hostname == "" {
		return "every hostname"
	}
	return fmt.Sprintf("%q", hostname)
}

// findOtherRoutes says of a request that no route answers what its listeners have
// routes for.
func (t *Trace) findOtherRoutes(r *Result) {
	for _, route := range r.Routes {
		attached := slices.ContainsFunc(t.Claimants, func(l *Listener) bool { return slices.Contains(l.routes, route) })
		if attached && !slices.ContainsFunc(t.Unserved, func(a UnservedRoute) bool { return a.Route == route }) {
			t.Others = append(t.Others, route.otherRoute(t.Request))
		}
	}
}

// otherRoute returns what the route asks for.
func (r *Route) otherRoute(request Request) OtherRoute {
	e := OtherRoute{Route: r}
	if !r.coversHost(request) {
		for _, hostname := range r.Hostnames {
			e.Hostnames = append(e.Hostnames, string(hostname))
		}
		return e
	}
	for i := range r.Rules {
		for _, match := range matchesOf(&r.Rules[i]) {
			if path, err := newPathMatch(match.Path); err == nil && !slices.Contains(e.Paths, path.expression) {
				e.Paths = append(e.Paths, path.expression)
			}
		}
	}
	return e
}

// coversHost reports whether the route's hostnames cover the request's.
func (r *Route) coversHost(request Request) bool {
	return len(r.Hostnames) == 0 || slices.ContainsFunc(r.Hostnames, func(h gatewayv1.Hostname) bool { return request.matchesHostname(string(h)) })
}

// unservedAt returns where and why the route has no part in the request although
// it means it. Of one that takes part only those matches are told that do not.
func (r *Route) unservedAt(t *Trace, takesPart bool) []UnservedRoute {
	if !r.coversHost(t.Request) || !r.mayMatch(t.Request) {
		return nil
	}
	var all []UnservedRoute
	for i := range r.Parents {
		parent := &r.Parents[i]
		var problems []Problem
		if !takesPart {
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

// parentProblems returns why the route has no part in the request by one parent: it
// is not accepted there, it has another hostname there, or its listeners are not
// in effect. A listener with a wider hostname than that which is held has no part
// either, whatever attaches to it.
func (r *Route) parentProblems(parent *Parent, t *Trace) []Problem {
	if p := parent.Rejected; p != nil && p.Reason != string(gatewayv1.RouteReasonUnsupportedValue) {
		return []Problem{*p}
	}
	var problems []Problem
	covered := false
	for _, l := range t.Listeners {
		if l.Owner != parent.Owner || !selects(parent.Ref, l) {
			continue
		}
		covered = true
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
	if !covered && len(r.Hostnames) > 0 {
		return []Problem{{Reason: string(gatewayv1.RouteReasonNoMatchingListenerHostname), Message: "It attached by another hostname; no listener there takes this one."}}
	}
	return problems
}

// mayMatch reports whether one of the route's matches means the request's path, or
// may mean it, because a tunnel cannot express it.
func (r *Route) mayMatch(request Request) bool {
	return slices.ContainsFunc(r.matches, func(m ruleMatch) bool { return request.matchesPath(m.path.expression) }) || len(r.omittedMatchProblems(request)) > 0
}

// omittedMatchProblems returns the matches that mean the request's path, or may mean it, and
// are not in the document: they ask for more than the path, or for a path that a
// tunnel cannot express.
func (r *Route) omittedMatchProblems(request Request) []Problem {
	var problems []Problem
	for i := range r.Rules {
		for j, match := range matchesOf(&r.Rules[i]) {
			path, err := newPathMatch(match.Path)
			if _, fields := translateMatch(match); len(fields) > 0 && (err != nil || request.matchesPath(path.expression)) {
				problems = append(problems, Problem{Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: fmt.Sprintf(
					"Rule %d leaves match %d out, which a tunnel cannot tell apart: %s.", i, j, strings.Join(fields, ", "))})
			}
		}
	}
	return problems
}
