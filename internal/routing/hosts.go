package routing

import (
	"maps"
	"slices"
)

// Host has the entries for all requests whose most specific hostname of the Table
// is Hostname.
type Host struct {
	Hostname string
	// Entries are the entries in the order in which they are tried. Requests that no
	// entry matches get the status 404.
	Entries []*Entry
}

// Hosts returns one list of entries for each hostname of the table, for data planes
// that choose a list by the most specific hostname and never fall through to the
// list of a wider hostname. It repeats the entries for wider hostnames of the same
// group. The hostnames are in the order of [CompareGroups].
func (t *Table) Hosts() []Host {
	groups := make(map[string]positions, len(t.Groups))
	hostnames := map[string]struct{}{}
	for i := range t.Groups {
		g := &t.Groups[i]
		groups[g.Hostname] = newPositions(g)
		hostnames[g.Hostname] = struct{}{}
		for j := range g.Entries {
			hostnames[g.Entries[j].Hostname] = struct{}{}
		}
	}
	hosts := make([]Host, 0, len(hostnames))
	for _, hostname := range slices.SortedFunc(maps.Keys(hostnames), CompareGroups) {
		owner, _ := MostSpecific(groups, hostname)
		hosts = append(hosts, Host{Hostname: hostname, Entries: groups[owner].entriesFor(hostname)})
	}
	return hosts
}

// positions are the positions of the entries of a group, by hostname.
type positions struct {
	group      *Group
	byHostname map[string][]int
}

func newPositions(g *Group) positions {
	p := positions{group: g, byHostname: map[string][]int{}}
	for i := range g.Entries {
		hostname := g.Entries[i].Hostname
		p.byHostname[hostname] = append(p.byHostname[hostname], i)
	}
	return p
}

// entriesFor returns the entries of the group that cover the hostname, in order.
func (p positions) entriesFor(hostname string) []*Entry {
	indexes := slices.Clone(p.byHostname[hostname])
	for wide := range WiderHostnames(hostname) {
		indexes = append(indexes, p.byHostname[wide]...)
	}
	slices.Sort(indexes)
	entries := make([]*Entry, len(indexes))
	for i, index := range indexes {
		entries[i] = &p.group.Entries[index]
	}
	return entries
}
