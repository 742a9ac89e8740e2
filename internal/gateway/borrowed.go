package gateway

import (
	"iter"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// maxBorrowed is how many rules one hostname gets from a listener for a wider hostname:
// redirects on the Gateway itself, which count for no tenant, or rules in place of
// redirects, which [group.cost] counts.
const maxBorrowed = 16

// redirectIndex has a listener's routes with redirects to https, by hostname. A route
// without hostnames has the empty one.
type redirectIndex map[string][]*Route

// newRedirectIndex indexes the routes that the group lends: the routes on its HTTP
// listeners in their owner's namespace. Other namespaces have no say in the hostnames of
// narrower listeners.
func (g *group) newRedirectIndex() redirectIndex {
	index := redirectIndex{}
	for _, route := range g.routes {
		if route.Namespace != g.owner.Namespace || !g.admits(route, routing.SchemeHTTP) || !slices.ContainsFunc(route.matches, isToHTTPS) {
			continue
		}
		if len(route.Hostnames) == 0 {
			index[""] = append(index[""], route)
		}
		for _, hostname := range route.Hostnames {
			index[string(hostname)] = append(index[string(hostname)], route)
		}
	}
	return index
}

func isToHTTPS(m ruleMatch) bool { return m.toHTTPS }

// intersecting returns the routes with a hostname that intersects with the hostname, each
// once.
func (x redirectIndex) intersecting(hostname string) []*Route {
	var routes []*Route
	if !routing.IsExact(hostname) {
		for other, all := range x {
			if _, ok := routing.Intersect(hostname, other); ok {
				routes = append(routes, all...)
			}
		}
	} else {
		routes = slices.Clone(x[hostname])
		for wide := range routing.WiderHostnames(hostname) {
			routes = append(routes, x[wide]...)
		}
	}
	slices.SortFunc(routes, func(a, b *Route) int { return a.source.Rank - b.source.Rank })
	return slices.Compact(routes)
}

// borrowedNames returns the routes with redirects to https that answer http in place of
// the group, the older ones first, with the hostnames for which they do.
func (g *group) borrowedNames(groups map[string]*group) iter.Seq2[*Route, servedHostname] {
	return func(yield func(*Route, servedHostname) bool) {
		lender := g.schemes.lender
		if lender == nil {
			return // most groups
		}
		if lender.schemes.redirects == nil {
			lender.schemes.redirects = lender.newRedirectIndex()
		}
		for _, route := range lender.schemes.redirects.intersecting(g.hostname) {
			for hostname := range g.hostnamesThrough(lender.owner, route, groups) {
				if !yield(route, hostname) {
					return
				}
			}
		}
	}
}

// redirects returns the redirects to https that answer http before the entries in the
// group.
func (g *group) redirects(groups map[string]*group) []*routing.Entry {
	var entries []*routing.Entry
	for route, hostname := range g.borrowedNames(groups) {
		for i := range route.matches {
			if route.matches[i].toHTTPS {
				e := newEntry(route, &route.matches[i], hostname)
				e.Scheme = routing.SchemeHTTP
				entries = append(entries, e)
			}
		}
	}
	routing.Sort(entries)
	if g.borrowsFromGateway() {
		return entries[:min(len(entries), maxBorrowed)]
	}
	return entries
}

// borrowsFromGateway reports whether the redirects belong to a listener on the Gateway
// itself.
func (g *group) borrowsFromGateway() bool {
	return g.schemes.lender != nil && g.schemes.lender.owner.Kind == KindGateway
}

// answerHTTPS inserts, after each redirect to https, the entries that answer https in its
// place.
func (g *group) answerHTTPS(entries []*routing.Entry, groups map[string]*group, configured overrides) []*routing.Entry {
	if g.schemes.secure == nil || !slices.ContainsFunc(entries, isHTTPOnly) {
		return entries // most groups
	}
	secure := g.newSecureEntries(groups, configured)
	var all []*routing.Entry
	for _, e := range entries {
		all = append(all, e)
		if isHTTPOnly(e) {
			all = secure.appendInsteadOf(all, e)
		}
	}
	return all
}

// isHTTPOnly reports, for a group of HTTP listeners alone, whether the entry is a
// redirect to https.
func isHTTPOnly(e *routing.Entry) bool { return e.Scheme == routing.SchemeHTTP }

// secureEntries are entries on HTTPS listeners that can answer in place of redirects.
type secureEntries struct {
	// byHostname are the entries by the hostname for which the group would serve them, and
	// covering the sorted entries that apply to a hostname.
	byHostname, covering map[string][]*routing.Entry
	// costs says how many rules each match counts as.
	costs map[*routing.Match]int
	// used counts the rules that answer for each hostname.
	used map[string]int
}

func (g *group) newSecureEntries(groups map[string]*group, configured overrides) *secureEntries {
	x := &secureEntries{map[string][]*routing.Entry{}, map[string][]*routing.Entry{}, map[*routing.Match]int{}, map[string]int{}}
	secure := g.schemes.secure
	settings := configured.byRoute(secure.hostname)
	for _, route := range secure.routes {
		if !secure.admits(route, routing.SchemeHTTPS) {
			continue
		}
		for hostname := range g.hostnamesThrough(secure.owner, route, groups) {
			for i := range route.matches {
				m := &route.matches[i]
				if m.toHTTPS {
					continue
				}
				e := newEntry(route, m, hostname)
				e.Scheme, e.OriginRequest = routing.SchemeHTTPS, settings[route]
				x.costs[e.Match] = m.repetitionCost()
				x.byHostname[e.Hostname] = append(x.byHostname[e.Hostname], e)
			}
		}
	}
	return x
}

// of returns the entries that apply to the hostname, in order.
func (x *secureEntries) of(hostname string) []*routing.Entry {
	if entries, ok := x.covering[hostname]; ok {
		return entries
	}
	entries := slices.Clone(x.byHostname[hostname])
	for wide := range routing.WiderHostnames(hostname) {
		entries = append(entries, x.byHostname[wide]...)
	}
	routing.Sort(entries)
	x.covering[hostname] = entries
	return entries
}

// appendInsteadOf appends the entries that answer https in place of a redirect, limited
// to its requests: at most maxBorrowed rules for each hostname. The status 404 answers
// the other requests. It also replaces an entry that cannot be limited, and those after
// it, which must not answer for it.
//
// A redirect for a wildcard only gets the status 404: a route on the HTTPS listener can
// name any hostname below it, and each would need its own list.
func (x *secureEntries) appendInsteadOf(to []*routing.Entry, redirect *routing.Entry) []*routing.Entry {
	if !routing.IsExact(redirect.Hostname) {
		return append(to, notFoundInsteadOf(redirect))
	}
	for _, e := range x.of(redirect.Hostname) {
		match, relation := redirect.Match.Intersect(e.Match)
		if relation == routing.Disjoint {
			continue
		}
		if relation == routing.Undecided || match.Path != e.Match.Path && replacesPrefix(e.Action) || !x.fits(redirect.Hostname, e.Match) {
			break
		}
		instead := *e
		instead.Hostname, instead.Match, instead.InsteadOf = redirect.Hostname, match, redirect.Source
		if to = append(to, &instead); e.Match.MatchesAll() {
			return to
		}
	}
	return append(to, notFoundInsteadOf(redirect))
}

// fits reports whether the hostname may have another entry with the match, and counts it.
func (x *secureEntries) fits(hostname string, m *routing.Match) bool {
	x.used[hostname] += x.costs[m]
	return x.used[hostname] <= maxBorrowed
}

// notFoundInsteadOf returns the entry that answers https in place of a redirect with the
// status 404.
func notFoundInsteadOf(redirect *routing.Entry) *routing.Entry {
	e := *redirect
	e.Scheme, e.InsteadOf, e.Action = routing.SchemeHTTPS, redirect.Source, &actionNoHTTPS
	return &e
}

// actionNoHTTPS answers https requests that a redirect to https matches.
var actionNoHTTPS = routing.Action{Status: 404, Problem: &routing.Problem{
	Reason: conditions.ReasonUnsupportedValue.String(), Cause: "a redirect to https does not serve https requests, and no rule on the HTTPS listener replaces it",
}}

// replacesPrefix reports whether the action replaces the path prefix that its match names.
func replacesPrefix(a *routing.Action) bool {
	isPrefix := func(c *routing.PathChange) bool { return c != nil && c.Prefix }
	if a.Redirect != nil {
		return isPrefix(a.Redirect.Path)
	}
	return a.Forward != nil && (a.Forward.Filters != nil && isPrefix(a.Forward.Filters.Rewrite.Path) ||
		slices.ContainsFunc(a.Forward.Backends, func(b routing.WeightedBackend) bool { return b.Filters != nil && isPrefix(b.Filters.Rewrite.Path) }))
}

// redirectCosts returns how many rules the route's redirects to https need for one
// hostname, and how many rules one repetition counts as.
func (r *Route) redirectCosts() (rules, repetition int) {
	for i := range r.matches {
		if m := &r.matches[i]; m.toHTTPS {
			rules, repetition = rules+m.cost, repetition+m.repetitionCost()
		}
	}
	return rules, repetition
}

// countBorrowed counts the rules for redirects of tenants, once for each hostname that
// repeats them, and refuses the routes for hostnames with more redirects than
// limits.routesPerHostname. Redirects on the Gateway itself count for no tenant.
func (l *limiter) countBorrowed(all shares, groups map[string]*group) {
	for _, hostname := range sortedHostnames(groups) {
		g := groups[hostname]
		if g.schemes.lender == nil || g.borrowsFromGateway() {
			continue // most groups
		}
		lists := separateCounter{l.namesIn(g, groups), map[string]int{}}
		used := map[string]int{}
		for route, hostname := range g.borrowedNames(groups) {
			s := all.of(route)
			if s.isRefused() {
				continue
			}
			rules, repetition := route.redirectCosts()
			if above := used[hostname.served] + rules; above > l.class.RoutesPerHostname {
				s.refused, s.aboveHostname = l.hostnameRoutesProblem(hostname.served, above), true
				continue
			}
			used[hostname.served] += rules
			s.borrowed += rules + repetition*lists.below(hostname.served)
		}
	}
}

// borrowedRules counts, by hostname, the rules for redirects of tenants that answer http
// in place of the group.
func (l *limiter) borrowedRules(all shares, g *group, groups map[string]*group) map[string]int {
	if g.schemes.lender == nil || g.borrowsFromGateway() {
		return nil // most groups
	}
	rules := map[string]int{}
	for route, hostname := range g.borrowedNames(groups) {
		if !all.of(route).isRefused() {
			cost, _ := route.redirectCosts()
			rules[hostname.served] += cost
		}
	}
	return rules
}

// namesIn returns the hostnames in a group for which a data plane that repeats rules has
// a list.
func (l *limiter) namesIn(g *group, groups map[string]*group) []string {
	names := map[string]struct{}{g.hostname: {}}
	for _, route := range g.routes {
		if g.cost(route) == 0 {
			continue // it has no entries
		}
		for hostname := range g.servedHostnames(route, groups) {
			names[hostname.served] = struct{}{}
		}
	}
	for _, hostname := range g.borrowedNames(groups) {
		names[hostname.served] = struct{}{}
	}
	for hostname := range l.access {
		if owner, ok := routing.MostSpecific(groups, hostname); ok && owner == g.hostname {
			names[hostname] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(names))
}
