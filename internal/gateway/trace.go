package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Trace shows how a request finds the routing table entry that answers it, and why other
// entries and routes do not answer it.
type Trace struct {
	Request routing.Request
	// Listeners are all listeners whose hostname matches the request host, served or not:
	// the most specific hostname first, then in order of precedence.
	Listeners []*Listener
	// Missed are the listener and entry hostnames that match the request hostname but not
	// the form of its host, because the data plane compares hosts exactly. The most
	// specific hostname comes first.
	Missed []string
	// Claimants are the listeners to which the request hostname belongs: among the
	// Listeners that claim their hostname, the listeners with the most specific hostname,
	// on any port.
	Claimants []*Listener
	// Receivers are the Claimants that receive the request. If they have both protocols,
	// and the data plane knows the request scheme, these are the listeners for its
	// scheme.
	Receivers []*Listener
	// Answer is the entry that answers the request. It is nil when the request gets
	// the status 404, and when the Gateway is not accepted.
	Answer *routing.Entry
	// Via are the served listeners through which the entry's route is attached:
	// Receivers, or else listeners for a wider hostname that answer for them.
	Via []*Listener
	// Shadowed are the other entries that match the request, in the order in which
	// they would answer it.
	Shadowed []routing.Shadowed
	// Unserved are the routes that match the request and do not serve it, the oldest
	// first.
	Unserved []UnservedRoute
	// Others are the routes that are attached to the Claimants and do not match the
	// request, the oldest first. There are none when a route answers.
	Others []OtherRoute
}

// OtherRoute is a route that does not match the request.
type OtherRoute struct {
	Route *Route
	// Hostnames are the route's hostnames, when none of them matches the host.
	Hostnames []string
	// Matches describe the route's matches, when a hostname matches.
	Matches []string
}

// UnservedRoute is a route that does not serve the request, with the reason.
type UnservedRoute struct {
	Route *Route
	// Parent is the Gateway or the ListenerSet to which the problem applies.
	Parent Owner
	Problem
}

// Trace explains which routing table entry answers the request.
func (r *Result) Trace(request routing.Request) *Trace {
	t := &Trace{Request: request}
	for _, l := range slices.Concat(r.Listeners, r.NotAllowedListeners()) {
		if routing.Covers(l.Hostname(), request.Host) {
			t.Listeners = append(t.Listeners, l)
		}
	}
	slices.SortStableFunc(t.Listeners, func(a, b *Listener) int { return routing.CompareGroups(a.Hostname(), b.Hostname()) })
	t.Missed = r.missed(request)
	t.Claimants = claimants(t.Listeners)
	t.Receivers = r.receivers(t.Claimants, request)
	served := r.findAnswer(t)
	for _, route := range r.Routes {
		t.Unserved = append(t.Unserved, r.unservedAt(route, t, served[&route.source])...)
	}
	if t.Answer == nil && r.Table != nil {
		r.findOtherRoutes(t, served)
	}
	return t
}

// missed returns the hostnames that match the request hostname but not its host.
func (r *Result) missed(request routing.Request) []string {
	if request.Host == request.Hostname() {
		return nil // most requests
	}
	missed := map[string]bool{}
	add := func(hostname string) {
		if routing.Covers(hostname, request.Hostname()) && !routing.Covers(hostname, request.Host) {
			missed[hostname] = true
		}
	}
	for _, l := range r.Listeners {
		add(l.Hostname())
	}
	if r.Table != nil {
		for _, g := range r.Table.Groups {
			for i := range g.Entries {
				add(g.Entries[i].Hostname)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(missed), routing.CompareGroups)
}

// findAnswer follows the request through the routing table, and returns the routes
// with an entry for the request in the group to which the request belongs. A Gateway
// that is not accepted answers nothing, but its routes are not to blame for that.
func (r *Result) findAnswer(t *Trace) map[*routing.Route]bool {
	table := r.Table
	switch {
	case table == nil && r.Usage == nil:
		return nil // without limits, the table could be too large
	case table == nil:
		table = newTable(r.groups(), nil, nil)
	}
	answer, shadowed := table.Answer(t.Request)
	served := map[*routing.Route]bool{}
	if answer != nil {
		served[answer.Source.Route] = true
	}
	for _, s := range shadowed {
		if len(t.Claimants) > 0 && s.Group == t.Claimants[0].Hostname() {
			served[s.Entry.Source.Route] = true
		}
	}
	if r.Table == nil {
		return served
	}
	t.Answer, t.Shadowed = answer, shadowed
	if answer != nil {
		t.Via = via(t, answer)
	}
	return served
}

// receivers returns the claimants that receive the request.
func (r *Result) receivers(claimants []*Listener, request routing.Request) []*Listener {
	var served routing.Schemes
	for _, l := range claimants {
		if l.Serves() {
			served = served.With(l.scheme())
		}
	}
	if !r.translator.capabilities.KnowsScheme || !served.HasBoth() {
		return claimants
	}
	return slices.DeleteFunc(slices.Clone(claimants), func(l *Listener) bool { return l.scheme() != cmp.Or(request.Scheme, routing.SchemeHTTPS) })
}

// via returns the listeners through which the route of the answer is attached.
func via(t *Trace, answer *routing.Entry) []*Listener {
	attached := func(listeners []*Listener) []*Listener {
		return slices.DeleteFunc(slices.Clone(listeners), func(l *Listener) bool {
			return !l.Serves() || !slices.ContainsFunc(l.routes, func(route *Route) bool { return &route.source == answer.Source.Route })
		})
	}
	if found := attached(t.Receivers); len(found) > 0 {
		return found
	}
	wider := slices.DeleteFunc(attached(t.Listeners), func(l *Listener) bool { return !answer.Scheme.Covers(l.scheme()) })
	return slices.DeleteFunc(wider, func(l *Listener) bool { return l.Hostname() != wider[0].Hostname() })
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

// findOtherRoutes adds the routes that are attached to the Claimants but do not
// match the request, in neither scheme.
func (r *Result) findOtherRoutes(t *Trace, served map[*routing.Route]bool) {
	for _, route := range r.Routes {
		attached := !served[&route.source] && slices.ContainsFunc(t.Claimants, func(l *Listener) bool { return slices.Contains(l.routes, route) })
		if attached && !slices.ContainsFunc(t.Unserved, func(u UnservedRoute) bool { return u.Route == route }) {
			t.Others = append(t.Others, r.otherRoute(route, t.Request))
		}
	}
}

// otherRoute returns the route's hostnames or matches that do not match the request.
func (r *Result) otherRoute(route *Route, request routing.Request) OtherRoute {
	other := OtherRoute{Route: route}
	if !route.coversHost(request) {
		for _, hostname := range route.Hostnames {
			other.Hostnames = append(other.Hostnames, string(hostname))
		}
		return other
	}
	for i := range route.matches {
		if text := route.matches[i].String(); !slices.Contains(other.Matches, text) {
			other.Matches = append(other.Matches, text)
		}
	}
	return other
}

// coversHost reports whether a hostname in the route matches the request host.
func (r *Route) coversHost(request routing.Request) bool {
	return len(r.Hostnames) == 0 || slices.ContainsFunc(r.Hostnames, func(h gatewayv1.Hostname) bool { return routing.Covers(string(h), request.Host) })
}

// unservedAt returns, for each parent, why the route does not serve the request
// although it matches. For a route that serves the request, it returns only the
// omitted matches.
func (r *Result) unservedAt(route *Route, t *Trace, served bool) []UnservedRoute {
	if !route.coversHost(t.Request) || !r.mayMatch(route, t.Request) {
		return nil
	}
	var all []UnservedRoute
	for i := range route.Parents {
		parent := &route.Parents[i]
		var problems []Problem
		if !served && (len(route.Hostnames) > 0 || !r.isForOtherHosts(parent, t)) {
			problems = route.parentProblems(parent, t)
		}
		if slices.ContainsFunc(parent.Listeners, func(l *Listener) bool { return slices.Contains(t.Claimants, l) }) {
			omitted := r.omittedMatchProblems(route, parent.Dropped, t.Request)
			if !served && len(problems)+len(omitted) == 0 {
				omitted = route.redirectProblems(t.Request)
			}
			problems = append(problems, omitted...)
		}
		for _, problem := range problems {
			if next := (UnservedRoute{Route: route, Parent: parent.Owner, Problem: problem}); !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}

// isForOtherHosts reports whether the parentRef selects listeners, and none of them matches
// the request host. A route without hostnames then does not match the request.
func (r *Result) isForOtherHosts(parent *Parent, t *Trace) bool {
	isSelected := func(l *Listener) bool { return l.Owner == parent.Owner && selects(parent.Ref, l) }
	return !slices.ContainsFunc(t.Listeners, isSelected) && slices.ContainsFunc(slices.Concat(r.Listeners, r.NotAllowedListeners()), isSelected)
}

// parentProblems returns why the route does not serve the request through one parent: the
// parent does not accept the route, the route has another hostname there, or the
// listeners are not served. It ignores listeners with a less specific hostname than the
// Claimants, because the request does not belong to them.
func (r *Route) parentProblems(parent *Parent, t *Trace) []Problem {
	if p := parent.Rejected; p != nil && p.Reason != conditions.ReasonUnsupportedValue {
		return []Problem{*p}
	}
	var problems []Problem
	selected := false
	for _, l := range t.Listeners {
		if l.Owner != parent.Owner || !selects(parent.Ref, l) {
			continue
		}
		selected = true
		if len(t.Claimants) > 0 && routing.CompareGroups(t.Claimants[0].Hostname(), l.Hostname()) < 0 {
			continue
		}
		if p := r.listenerProblem(parent, l, t.Request.Host); p != nil {
			problems = append(problems, *p)
		}
	}
	if !selected && len(r.Hostnames) > 0 {
		return []Problem{{
			Reason:  conditions.ReasonNoMatchingListenerHostname,
			Message: "The route is attached with another hostname; no listener of this parent matches the requested hostname.",
		}}
	}
	return problems
}

// listenerProblem returns why a listener that the parentRef selects does not serve the
// route for the host, or nil.
func (r *Route) listenerProblem(parent *Parent, l *Listener, host string) *Problem {
	if !slices.Contains(parent.Listeners, l) {
		return r.problemAtStep(r.attachmentStep(l, parent.Ref), parent.Ref, []*Listener{l})
	}
	if p := r.leftOutProblem(l, host); p != nil {
		return p
	}
	if p := cmp.Or(l.Rejected, l.Unresolved); p != nil {
		return &Problem{Reason: p.Reason, Message: fmt.Sprintf("Listener %q: %s", l.Spec.Name, p.Message)}
	}
	return nil
}

// mayMatch reports whether one of the route's matches matches the request, or could match
// it but is omitted.
func (r *Result) mayMatch(route *Route, request routing.Request) bool {
	return slices.ContainsFunc(route.matches, func(m ruleMatch) bool { return m.Matches(request) }) || len(r.omittedMatchProblems(route, route.Dropped, request)) > 0
}

// redirectProblems returns a problem for each redirect to https that matches the request,
// but that no HTTP listener for its hostname admits.
func (r *Route) redirectProblems(request routing.Request) []Problem {
	var problems []Problem
	for i := range r.matches {
		if m := &r.matches[i]; m.toHTTPS && m.Matches(request) {
			d := DroppedRule{Rule: m.rule, LeftOut: true, Redirect: redirectOfHTTPS}
			problems = append(problems, Problem{Reason: conditions.ReasonUnsupportedValue, Message: DescribeDropped(d)})
		}
	}
	return problems
}

// omittedMatchProblems returns a problem for each omitted match, and each rule that is
// left out because of its scheme, that matches the request's path, or whose path the data
// plane cannot express.
func (r *Result) omittedMatchProblems(route *Route, all []DroppedRule, request routing.Request) []Problem {
	var problems []Problem
	add := func(d DroppedRule, matches ...int) {
		mayMatch := func(match int) bool {
			path, _, err := r.translator.path(matchesOf(&route.Rules[d.Rule])[match].Path, route.call(d.Rule, match))
			return err != nil || path.Matches(request.Path)
		}
		if slices.ContainsFunc(matches, mayMatch) {
			problems = append(problems, Problem{Reason: conditions.ReasonUnsupportedValue, Message: DescribeDropped(d)})
		}
	}
	for _, dropped := range all {
		if dropped.Redirect != "" || dropped.AfterHTTPS {
			matches := make([]int, len(matchesOf(&route.Rules[dropped.Rule])))
			for i := range matches {
				matches[i] = i
			}
			add(dropped, matches...)
		}
		for _, omitted := range dropped.Matches {
			add(DroppedRule{Rule: dropped.Rule, Matches: []OmittedMatch{omitted}, LeftOut: dropped.LeftOut}, omitted.Match)
		}
	}
	return problems
}
