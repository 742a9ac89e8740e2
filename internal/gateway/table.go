package gateway

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// group contains the routes on all listeners with one hostname.
type group struct {
	hostname string
	owner    Owner     // of all listeners
	first    *Listener // of these listeners
	routes   []*Route
	repeats  bool // whether a route can be in routes several times
	// separate are the narrower hostnames with separate Access settings.
	separate []string
	schemes  groupSchemes
	// notFound counts the 404 rules that count for the owner of the listeners.
	notFound int
	// completeLists are the routes by hostname while no route is refused or confined. They are nil
	// until they are needed.
	completeLists map[string]*hostnameList
}

// newTable returns the routing table for the groups.
func newTable(groups map[string]*group, configured overrides, access routing.Access) *routing.Table {
	t := &routing.Table{Groups: make([]routing.Group, len(groups)), Access: access}
	entries := make([]*routing.Entry, 0, len(groups)) // one buffer for all groups
	for i, hostname := range sortedHostnames(groups) {
		g, first := groups[hostname], len(entries)
		entries = g.appendEntries(entries, groups, configured.byRoute(hostname))
		own := appendedSince(entries, first)
		routing.Sort(own)
		t.Groups[i] = routing.Group{
			Hostname: hostname, Namespace: g.owner.Namespace, Redirects: g.redirects(groups), Entries: g.answerHTTPS(own, groups, configured),
		}
	}
	return t
}

// sortedNames returns the keys in alphabetical order.
func sortedNames[V any](m map[string]V) []string {
	names := slices.AppendSeq(slices.Grow([]string(nil), len(m)), maps.Keys(m))
	slices.Sort(names)
	return names
}

func sortedHostnames(groups map[string]*group) []string {
	hostnames := slices.AppendSeq(make([]string, 0, len(groups)), maps.Keys(groups))
	slices.SortFunc(hostnames, routing.CompareGroups)
	return hostnames
}

// groupsOf groups the listeners by hostname. A group's listeners have the same owner and
// can have different ports, which a tunnel does not distinguish. A listener that claims
// its hostname but is not served still creates a group.
func groupsOf(listeners []*Listener) map[string]*group {
	groups := make(map[string]*group, len(listeners))
	for _, l := range listeners {
		if !l.claims {
			continue
		}
		g := groups[l.Hostname()]
		if g == nil {
			g = &group{hostname: l.Hostname(), owner: l.Owner, first: l}
			groups[g.hostname] = g
		}
		if l.Serves() {
			g.addScheme(l)
			g.add(l.routes)
		}
	}
	for _, g := range groups {
		g.removeRepeated()
	}
	return groups
}

func (g *group) add(routes []*Route) {
	if g.routes == nil {
		g.routes = slices.Clip(routes) // avoids a copy: most hostnames have one listener
		return
	}
	g.routes = append(g.routes, routes...)
	g.repeats = true
}

// removeRepeated keeps one copy of routes that are attached to several listeners in the
// group.
func (g *group) removeRepeated() {
	if g.repeats {
		slices.SortFunc(g.routes, func(a, b *Route) int { return cmp.Compare(a.source.Rank, b.source.Rank) })
		g.routes = slices.Compact(g.routes)
	}
}

// isCovered reports whether a more specific group covers the hostname, so that no
// request for the hostname belongs to this group.
func (g *group) isCovered(hostname string, groups map[string]*group) bool {
	if hostname == g.hostname {
		return false // most hostnames
	}
	owner, _ := routing.MostSpecific(groups, hostname)
	return owner != g.hostname
}

// servedHostnames returns the route's hostnames for which the group serves it.
func (g *group) servedHostnames(route *Route, groups map[string]*group) iter.Seq[servedHostname] {
	return g.hostnamesThrough(g.owner, route, groups)
}

// hostnamesThrough returns the route's hostnames for which the group would serve it
// through a listener that the owner has.
func (g *group) hostnamesThrough(owner Owner, route *Route, groups map[string]*group) iter.Seq[servedHostname] {
	return func(yield func(servedHostname) bool) {
		for hostname := range route.hostnamesOnListener(owner, g.hostname) {
			if g.isCovered(hostname.served, groups) || route.hasMoreSpecific(hostname, g.hostname) {
				continue
			}
			if !yield(hostname) {
				return
			}
		}
	}
}

// appendEntries appends the entries in the group that requests can reach, in any order.
func (g *group) appendEntries(entries []*routing.Entry, groups map[string]*group, overrides map[*Route]*v1alpha1.OriginRequest) []*routing.Entry {
	for _, route := range g.routes {
		afterHTTPS := g.isAfterHTTPS(route)
		for hostname := range g.servedHostnames(route, groups) {
			for i := range route.matches {
				m := &route.matches[i]
				scheme, answers := g.schemeOf(route, m)
				if !answers || afterHTTPS && route.isUnsupported(m.rule) {
					continue
				}
				e := newEntry(route, m, hostname)
				e.Scheme, e.AfterHTTPS, e.OriginRequest = scheme, afterHTTPS, overrides[route]
				entries = append(entries, e)
			}
		}
	}
	return entries
}

func newEntry(route *Route, m *ruleMatch, hostname servedHostname) *routing.Entry {
	return &routing.Entry{
		Hostname: hostname.served, RouteHostname: hostname.written, Match: &m.Match, Action: &route.actions[m.rule],
		Source: routing.Source{Route: &route.source, Rule: m.rule, Match: m.match},
	}
}
