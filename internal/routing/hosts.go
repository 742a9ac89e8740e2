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
// that a group covers counts as a hostname of the table. The hostnames are in the order of
// [CompareGroups].
func (t *Table) Hosts() []Host {
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
	for hostname := range t.Access {
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
	byHostname map[string][]int // the positions of the entries
}

// Index returns the index of the entries.
func (g *Group) Index() Index {
	x := Index{group: g, byHostname: map[string][]int{}}
	for i := range g.Entries {
		hostname := g.Entries[i].Hostname
		x.byHostname[hostname] = append(x.byHostname[hostname], i)
	}
	return x
}

// EntriesFor returns the entries of the group that requests for the hostname can reach, in
// order. The entries for a narrower hostname come before those for a wider one, so a match of
// every request shadows the wider ones. Entries of a [Route] that is Confined shadow others
// even where they do not apply, so that no entry takes their place.
func (x Index) EntriesFor(hostname string) []*Entry {
	indexes := slices.Clone(x.byHostname[hostname])
	for wide := range WiderHostnames(hostname) {
		if x.matchesAll(indexes) {
			break
		}
		indexes = append(indexes, x.byHostname[wide]...)
	}
	slices.Sort(indexes)
	entries := make([]*Entry, 0, len(indexes))
	for _, index := range indexes {
		if e := &x.group.Entries[index]; !e.Source.Route.Confined || x.applies(e, hostname) {
			entries = append(entries, e)
		}
	}
	return entries
}

// applies reports whether an entry of a confined route applies to the hostname: a route of
// the same tenant names the most specific hostname that covers it.
func (x Index) applies(e *Entry, hostname string) bool {
	named, _ := MostSpecific(x.byHostname, hostname)
	return slices.ContainsFunc(x.byHostname[named], func(i int) bool { return x.group.Entries[i].Source.Route.Tenant == e.Source.Route.Tenant })
}

// matchesAll reports whether one of the entries matches every request.
func (x Index) matchesAll(indexes []int) bool {
	return slices.ContainsFunc(indexes, func(i int) bool { return x.group.Entries[i].Match.MatchesAll() })
}
