package gateway

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// maxBorrowed is the number of entries that one hostname gets from another listener of the
// Gateway. These entries count for no tenant.
const maxBorrowed = 16

// redirectIndex has the routes of a listener with redirects to https, by their hostnames. A route
// without hostnames has the empty one.
type redirectIndex map[string][]*Route

// newRedirectIndex returns the index of the routes that the group lends: those of its HTTP
// listeners in the namespace of their owner. Other namespaces have no say in the hostnames of
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

// intersecting returns the routes with a hostname that intersects with the hostname, without
// repetition.
func (x redirectIndex) intersecting(hostname string) []*Route {
	var routes []*Route
	if isWildcard := hostname == "" || strings.HasPrefix(hostname, "*."); isWildcard {
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

// borrowed returns the matches of redirects to https that answer http in the place of the group,
// the older routes first.
func (g *group) borrowed(groups map[string]*group) iter.Seq2[*Route, routing.Entry] {
	return func(yield func(*Route, routing.Entry) bool) {
		lender := g.schemes.lender
		if lender == nil {
			return // most groups
		}
		if lender.schemes.redirects == nil {
			lender.schemes.redirects = lender.newRedirectIndex()
		}
		for _, route := range lender.schemes.redirects.intersecting(g.hostname) {
			for hostname := range g.hostnamesThrough(lender.owner, route, groups) {
				for i := range route.matches {
					e := newEntry(route, &route.matches[i], hostname)
					e.Scheme = routing.SchemeHTTP
					if route.matches[i].toHTTPS && !yield(route, e) {
						return
					}
				}
			}
		}
	}
}

// redirects returns the redirects to https that answer http before the entries of the group.
func (g *group) redirects(groups map[string]*group) []routing.Entry {
	var entries []routing.Entry
	for _, e := range g.borrowed(groups) {
		entries = append(entries, e)
	}
	routing.Sort(entries)
	if g.borrowsFromGateway() {
		return entries[:min(len(entries), maxBorrowed)]
	}
	return entries
}

// borrowsFromGateway reports whether the redirects belong to a listener of the Gateway itself.
func (g *group) borrowsFromGateway() bool {
	return g.schemes.lender != nil && g.schemes.lender.owner.Kind == KindGateway
}

// answerHTTPS inserts, after each redirect to https, the entries that answer https in its place: at
// most maxBorrowed rules for each hostname, and those that answer 404.
func (g *group) answerHTTPS(entries []routing.Entry, groups map[string]*group, configured overrides) []routing.Entry {
	if g.schemes.secure == nil || !slices.ContainsFunc(entries, isHTTPOnly) {
		return entries // most groups
	}
	secure, costs := g.secureEntries(groups, configured)
	used := map[string]int{}
	fits := func(hostname string, m *routing.Match) bool {
		used[hostname] += costs[m]
		return used[hostname] <= maxBorrowed
	}
	var all []routing.Entry
	for i := range entries {
		all = append(all, entries[i])
		if !isHTTPOnly(entries[i]) {
			continue
		}
		x := insteadOf{redirect: &entries[i], closed: map[string]bool{}}
		for _, e := range secure {
			x.add(e, fits)
		}
		x.close(entries[i].Hostname)
		all = append(all, x.entries...)
	}
	return all
}

// isHTTPOnly reports, for a group of HTTP listeners alone, whether the entry is a redirect to https.
func isHTTPOnly(e routing.Entry) bool { return e.Scheme == routing.SchemeHTTP }

// secureEntries returns the entries of the HTTPS listeners that answer in the place of redirects,
// and the number of rules for which each of their matches counts.
func (g *group) secureEntries(groups map[string]*group, configured overrides) ([]routing.Entry, map[*routing.Match]int) {
	secure, costs := g.schemes.secure, map[*routing.Match]int{}
	settings := configured.byRoute(secure.hostname)
	var entries []routing.Entry
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
				costs[e.Match] = m.repetitionCost()
				e.Scheme, e.OriginRequest = routing.SchemeHTTPS, settings[route]
				entries = append(entries, e)
			}
		}
	}
	routing.Sort(entries)
	return entries, costs
}

// insteadOf collects the entries that answer https in the place of one redirect.
type insteadOf struct {
	redirect *routing.Entry
	entries  []routing.Entry
	// closed are the hostnames whose requests the entries answer all.
	closed map[string]bool
}

// add adds the entry of an HTTPS listener, limited to the requests of the redirect. fits reports
// whether the hostname may have another entry with the match. An entry that cannot be limited, or
// that does not fit, is replaced by the status 404: the entries after it must not answer for it.
func (x *insteadOf) add(e routing.Entry, fits func(hostname string, m *routing.Match) bool) {
	hostname, ok := routing.Intersect(x.redirect.Hostname, e.Hostname)
	if !ok {
		return
	}
	if _, isClosed := routing.MostSpecific(x.closed, hostname); isClosed {
		return
	}
	match, relation := x.redirect.Match.Intersect(e.Match)
	switch {
	case relation == routing.Disjoint:
		return
	case relation == routing.Undecided || match.Path != e.Match.Path && replacesPrefix(e.Action) || !fits(hostname, e.Match):
		x.close(hostname)
		return
	}
	if e.Match.MatchesAll() {
		x.closed[hostname] = true
	}
	e.Hostname, e.Match, e.InsteadOf = hostname, match, x.redirect.Source
	x.entries = append(x.entries, e)
}

// close answers all other requests of the redirect for the hostname with the status 404.
func (x *insteadOf) close(hostname string) {
	if x.closed[hostname] {
		return
	}
	x.closed[hostname] = true
	last := *x.redirect
	last.Hostname, last.Scheme, last.InsteadOf, last.Action = hostname, routing.SchemeHTTPS, x.redirect.Source, &actionNoHTTPS
	x.entries = append(x.entries, last)
}

// actionNoHTTPS answers the requests with https of a redirect to https.
var actionNoHTTPS = routing.Action{Status: 404, Problem: &routing.Problem{
	Reason: conditions.ReasonUnsupportedValue.String(), Cause: "a redirect to https does not answer https, and no rule of the HTTPS listener does in its place",
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

// namesOfOtherListeners returns the routes of other listeners that answer in the place of the group,
// with the hostnames for which they do. A data plane that repeats rules has a list for each of them.
func (g *group) namesOfOtherListeners(groups map[string]*group) iter.Seq2[*Route, string] {
	return func(yield func(*Route, string) bool) {
		secure := g.schemes.secure
		for route, e := range g.borrowed(groups) {
			if !yield(route, e.Hostname) {
				return
			}
		}
		if secure == nil || !slices.ContainsFunc(g.routes, func(r *Route) bool { return slices.ContainsFunc(r.matches, isToHTTPS) }) {
			return // most groups
		}
		for _, route := range secure.routes {
			if !secure.admits(route, routing.SchemeHTTPS) {
				continue
			}
			for hostname := range g.hostnamesThrough(secure.owner, route, groups) {
				if !yield(route, hostname.served) {
					return
				}
			}
		}
	}
}

// countBorrowed counts the rules for the redirects of tenants, once for each hostname that repeats
// them, and refuses the routes for hostnames with more redirects than limits.routesPerHostname.
// The redirects of the Gateway itself count for no tenant.
func (l *limiter) countBorrowed(all shares, groups map[string]*group) {
	for _, hostname := range sortedHostnames(groups) {
		g := groups[hostname]
		if g.schemes.lender == nil || g.borrowsFromGateway() {
			continue // most groups
		}
		lists := separateCounter{l.namesIn(g, groups), map[string]int{}}
		used := map[string]int{}
		for route, e := range g.borrowed(groups) {
			s, m := all.of(route), route.matchAt(e.Source)
			s.borrowed += m.cost + m.repetitionCost()*lists.below(e.Hostname)
			if used[e.Hostname] += m.cost; used[e.Hostname] > l.class.RoutesPerHostname && !s.isRefused() {
				s.refused, s.aboveHostname = l.hostnameRoutesProblem(e.Hostname, used[e.Hostname]), true
			}
		}
	}
}

// borrowedRules returns the number of rules for the redirects of tenants that answer http in the
// place of the group, by their hostname.
func (l *limiter) borrowedRules(all shares, g *group, groups map[string]*group) map[string]int {
	if g.schemes.lender == nil || g.borrowsFromGateway() {
		return nil // most groups
	}
	rules := map[string]int{}
	for route, e := range g.borrowed(groups) {
		if !all.of(route).isRefused() {
			rules[e.Hostname] += route.matchAt(e.Source).cost
		}
	}
	return rules
}

// namesIn returns the hostnames of a group for which a data plane that repeats rules has a list.
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
	for _, e := range g.borrowed(groups) {
		names[e.Hostname] = struct{}{}
	}
	for hostname := range l.access {
		if owner, ok := routing.MostSpecific(groups, hostname); ok && owner == g.hostname {
			names[hostname] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(names))
}

// matchAt returns the match of the route that the source names.
func (r *Route) matchAt(s routing.Source) *ruleMatch {
	i := slices.IndexFunc(r.matches, func(m ruleMatch) bool { return m.rule == s.Rule && m.match == s.Match })
	return &r.matches[i]
}
