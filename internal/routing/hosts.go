package routing

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// Host has the entries for all requests whose most specific hostname of the Table
// is Hostname.
type Host struct {
	Hostname string
	// Entries are the entries in the order in which they are tried. Requests that no
	// entry matches get the status 404.
	Entries []*Entry
	// Access is the Cloudflare Access that the requests require, or nil.
	Access *v1alpha1.Access
}

// Hosts returns one list of entries for each hostname of the table, for data planes that choose
// a list by the most specific hostname and never fall through to the list of a wider hostname.
// It repeats the entries for wider hostnames of the same group. Each hostname of [Table.Access]
// and of also counts as a hostname of the table if a group covers it. The hostnames are in the
// order of [CompareGroups].
func (t *Table) Hosts(also ...string) []Host {
	groups := make(map[string]Index, len(t.Groups))
	hostnames := map[string]struct{}{}
	for i := range t.Groups {
		g := &t.Groups[i]
		groups[g.Hostname] = g.Index()
		hostnames[g.Hostname] = struct{}{}
		for j := range g.Entries {
			hostnames[g.Entries[j].Hostname] = struct{}{}
		}
	}
	for _, hostname := range slices.AppendSeq(also, maps.Keys(t.Access)) {
		if _, covered := MostSpecific(groups, hostname); covered {
			hostnames[hostname] = struct{}{}
		}
	}
	hosts := make([]Host, 0, len(hostnames))
	for _, hostname := range slices.SortedFunc(maps.Keys(hostnames), CompareGroups) {
		owner, _ := MostSpecific(groups, hostname)
		hosts = append(hosts, Host{Hostname: hostname, Entries: groups[owner].EntriesFor(hostname), Access: t.Access.Of(hostname)})
	}
	return hosts
}

// Index finds the entries of a group by hostname.
type Index struct {
	group      *Group
	byHostname map[string]*indexed
}

// indexed are the entries for one hostname, by their positions.
type indexed struct {
	// all are the entries of routes that are not confined, and confined the others by their
	// tenant.
	all      []int
	confined map[string][]int
	// tenants are the tenants of all entries, without repetition.
	tenants []string
	// matchesAll reports whether an entry matches every request.
	matchesAll bool
}

// Index returns the index of the entries.
func (g *Group) Index() Index {
	x := Index{group: g, byHostname: map[string]*indexed{}}
	for i := range g.Entries {
		e := &g.Entries[i]
		named := x.byHostname[e.Hostname]
		if named == nil {
			named = &indexed{}
			x.byHostname[e.Hostname] = named
		}
		named.add(e, i)
	}
	return x
}

func (n *indexed) add(e *Entry, position int) {
	route := e.Source.Route
	n.matchesAll = n.matchesAll || e.Match.MatchesAll()
	if !slices.Contains(n.tenants, route.Tenant) {
		n.tenants = append(n.tenants, route.Tenant)
	}
	if !route.Confined {
		n.all = append(n.all, position)
		return
	}
	if n.confined == nil {
		n.confined = map[string][]int{}
	}
	n.confined[route.Tenant] = append(n.confined[route.Tenant], position)
}

// appendFor appends the entries that apply to a hostname that the tenants name.
func (n *indexed) appendFor(tenants []string, to []int) []int {
	to = append(to, n.all...)
	for _, tenant := range tenants {
		to = append(to, n.confined[tenant]...)
	}
	return to
}

// EntriesFor returns the entries of the group that requests for the hostname can reach, in
// order. The entries for a narrower hostname come before those for a wider one, so a match of
// every request shadows the wider ones. Entries of a [Route] that is Confined shadow others
// even where they do not apply, so that no entry takes their place. They apply to a hostname
// if a route of their tenant names the most specific hostname that covers it.
func (x Index) EntriesFor(hostname string) []*Entry {
	named, ok := MostSpecific(x.byHostname, hostname)
	if !ok {
		return []*Entry{}
	}
	tenants := x.byHostname[named].tenants
	indexes, matchesAll := x.byHostname[named].appendFor(tenants, nil), x.byHostname[named].matchesAll
	for wide := range WiderHostnames(named) {
		if matchesAll {
			break
		}
		if n := x.byHostname[wide]; n != nil {
			indexes, matchesAll = n.appendFor(tenants, indexes), n.matchesAll
		}
	}
	slices.Sort(indexes)
	entries := make([]*Entry, len(indexes))
	for i, index := range indexes {
		entries[i] = &x.group.Entries[index]
	}
	return entries
}
