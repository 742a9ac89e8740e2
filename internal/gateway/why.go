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
		if request.on(l.Hostname()) {
			t.Listeners = append(t.Listeners, l)
		}
	}
	slices.SortStableFunc(t.Listeners, func(a, b *Listener) int {
		return orderOf(a.Hostname()).compare(orderOf(b.Hostname()))
	})
	t.Claimants = holders(t.Listeners)
	met := t.entrants()
	if r.Rejected == nil {
		t.Answer = slices.IndexFunc(r.Rules, func(rule Rule) bool { return request.on(rule.Hostname) && request.at(rule.Path) })
		t.compete(r, met)
	}
	for _, route := range r.Routes {
		takesPart := slices.ContainsFunc(met, func(e entrant) bool { return e.route == route && e.group == t.Claimants[0].Hostname() })
		t.Unserved = append(t.Unserved, route.absences(t, takesPart)...)
	}
	if t.Answer >= 0 && r.Rules[t.Answer].Route == nil {
		t.findElsewhere(r)
	}
	return t
}

// holders returns those of the first hostname that is held at all.
func holders(covering []*Listener) []*Listener {
	first := slices.IndexFunc(covering, func(l *Listener) bool { return l.claims })
	if first < 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(covering), func(l *Listener) bool {
		return !l.claims || l.Hostname() != covering[first].Hostname()
	})
}

// entrants returns the candidates for the request among all that the table
// serves, in the order of the document.
func (t *Trace) entrants() []entrant {
	var met []entrant
	for _, g := range sortedGroups(hostnameGroups(t.Listeners)) {
		for _, c := range g.appendCandidates(nil) {
			if next := (entrant{g.hostname, c}); next.meets(t.Request) && !slices.ContainsFunc(met, next.same) {
				met = append(met, next)
			}
		}
	}
	return met
}

// compete says of each candidate what came of it.
func (t *Trace) compete(r *Result, met []entrant) {
	answer := &r.Rules[t.Answer]
	t.Failure = answer.broken()
	for _, e := range met {
		if e.is(answer) {
			t.Via = slices.DeleteFunc(slices.Clone(t.Claimants), func(l *Listener) bool { return !l.Serves() || !slices.Contains(l.routes, answer.Route) })
			continue
		}
		b := ShadowedMatch{
			Rule: e.rule(groupSettings{}), Index: slices.IndexFunc(r.Rules, func(rule Rule) bool { return e.is(&rule) }),
			CoveredBy: -1, Reason: e.because(t, met[0], answer.Route == nil),
		}
		if b.Index < 0 {
			b.CoveredBy = slices.IndexFunc(r.Rules, e.hiddenBy)
		}
		t.Shadowed = append(t.Shadowed, b)
	}
}

// broken says why a rule of a route answers with an error, or nothing.
func (r *Rule) broken() *Problem {
	switch {
	case r.Route == nil || r.Service != serviceError:
		return nil
	case len(r.Route.answers[r.Number].unsupported) > 0:
		return &Problem{Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: fmt.Sprintf(
			"Rule %d asks for what a tunnel cannot do: %s.", r.Number, strings.Join(r.Route.answers[r.Number].unsupported, ", "))}
	case r.Route.answers[r.Number].broken != nil:
		p := r.Route.answers[r.Number].broken
		return &Problem{Reason: p.Reason, Message: fmt.Sprintf("Rule %d: %s.", r.Number, p.Message)}
	default:
		return &Problem{Reason: string(gatewayv1.RouteReasonBackendNotFound), Message: fmt.Sprintf("Rule %d has no backend of a weight above 0.", r.Number)}
	}
}

// entrant is a candidate with the hostname of its group.
type entrant struct {
	group string
	candidate
}

func (e entrant) meets(request Request) bool {
	return request.on(e.hostname.served) && request.at(e.match.path.expression)
}

// same reports whether both are one rule: a route can meet the request by
// several listeners and by several of its hostnames.
func (e entrant) same(other entrant) bool {
	return e.match == other.match && e.hostname.served == other.hostname.served
}

func (e entrant) is(rule *Rule) bool {
	return e.route == rule.Route && e.match.rule == rule.Number && e.match.match == rule.Match && e.hostname.served == rule.Hostname
}

// hiddenBy reports whether the rule takes every request that this one could,
// which is why the document leaves it out.
func (e entrant) hiddenBy(rule Rule) bool {
	return rule.Path == "" && covers(rule.Hostname, e.hostname.served) ||
		rule.Hostname == e.hostname.served && rule.Path == e.match.path.expression
}

// because says why the entrant comes after the winner; ended is whether the
// request's own hostname has none.
func (e entrant) because(t *Trace, winner entrant, ended bool) string {
	if ended {
		return fmt.Sprintf("the request belongs to the listener of %s and never falls through to %s",
			nameHostname(t.Claimants[0].Hostname()), nameHostname(e.group))
	}
	a, b := winner, e
	switch {
	case a.group != b.group:
		return fmt.Sprintf("its listener's hostname, %s, is wider than %s", nameHostname(b.group), nameHostname(a.group))
	case a.hostname.written != b.hostname.written:
		return fmt.Sprintf("the route's hostname, %s, is wider than %s", nameHostname(b.hostname.written), nameHostname(a.hostname.written))
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

func nameHostname(hostname string) string {
	if hostname == "" {
		return "every hostname"
	}
	return fmt.Sprintf("%q", hostname)
}

// findElsewhere says of a request that no route answers what its listeners have
// routes for.
func (t *Trace) findElsewhere(r *Result) {
	for _, route := range r.Routes {
		attached := slices.ContainsFunc(t.Claimants, func(l *Listener) bool { return slices.Contains(l.routes, route) })
		if attached && !slices.ContainsFunc(t.Unserved, func(a UnservedRoute) bool { return a.Route == route }) {
			t.Others = append(t.Others, route.elsewhere(t.Request))
		}
	}
}

// elsewhere returns what the route asks for.
func (r *Route) elsewhere(request Request) OtherRoute {
	e := OtherRoute{Route: r}
	if !r.names(request) {
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

// names reports whether the route's hostnames cover the request's.
func (r *Route) names(request Request) bool {
	return len(r.Hostnames) == 0 || slices.ContainsFunc(r.Hostnames, func(h gatewayv1.Hostname) bool { return request.on(string(h)) })
}

// absences returns where and why the route has no part in the request although
// it means it. Of one that takes part only those matches are told that do not.
func (r *Route) absences(t *Trace, takesPart bool) []UnservedRoute {
	if !r.names(t.Request) || !r.means(t.Request) {
		return nil
	}
	var all []UnservedRoute
	for i := range r.Parents {
		parent := &r.Parents[i]
		var problems []Problem
		if !takesPart {
			problems = r.problemsAt(parent, t)
		}
		if slices.ContainsFunc(parent.Listeners, func(l *Listener) bool { return slices.Contains(t.Claimants, l) }) {
			problems = append(problems, r.leftOut(t.Request)...)
		}
		for _, problem := range problems {
			if next := (UnservedRoute{Route: r, Parent: parent.Owner, Problem: problem}); !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// problemsAt returns why the route has no part in the request by one parent: it
// is not accepted there, it has another hostname there, or its listeners are not
// in effect. A listener with a wider hostname than that which is held has no part
// either, whatever attaches to it.
func (r *Route) problemsAt(parent *Parent, t *Trace) []Problem {
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
		if len(t.Claimants) > 0 && orderOf(t.Claimants[0].Hostname()).compare(orderOf(l.Hostname())) < 0 {
			continue
		}
		switch p := cmp.Or(l.Rejected, l.Unresolved); {
		case !slices.Contains(parent.Listeners, l):
			problems = append(problems, *r.rejectedAt(r.stepAt(l, parent.Ref), parent, []*Listener{l}))
		case p != nil:
			problems = append(problems, Problem{Reason: p.Reason, Message: fmt.Sprintf("Listener %q: %s", l.Spec.Name, p.Message)})
		}
	}
	if !covered && len(r.Hostnames) > 0 {
		return []Problem{{Reason: string(gatewayv1.RouteReasonNoMatchingListenerHostname), Message: "It attached by another hostname; no listener there takes this one."}}
	}
	return problems
}

// means reports whether one of the route's matches means the request's path, or
// may mean it, because a tunnel cannot express it.
func (r *Route) means(request Request) bool {
	return slices.ContainsFunc(r.matches, func(m ruleMatch) bool { return request.at(m.path.expression) }) || len(r.leftOut(request)) > 0
}

// leftOut returns the matches that mean the request's path, or may mean it, and
// are not in the document: they ask for more than the path, or for a path that a
// tunnel cannot express.
func (r *Route) leftOut(request Request) []Problem {
	var problems []Problem
	for i := range r.Rules {
		for j, match := range matchesOf(&r.Rules[i]) {
			path, err := newPathMatch(match.Path)
			if _, fields := expressMatch(match); len(fields) > 0 && (err != nil || request.at(path.expression)) {
				problems = append(problems, Problem{Reason: string(gatewayv1.RouteReasonUnsupportedValue), Message: fmt.Sprintf(
					"Rule %d leaves match %d out, which a tunnel cannot tell apart: %s.", i, j, strings.Join(fields, ", "))})
			}
		}
	}
	return problems
}
