package routing

import (
	"maps"
	"slices"
)

// Host has the entries for all requests whose most specific hostname in the Table is
// Hostname.
type Host struct {
	Hostname string
	// Entries are in the order in which they are tried. Requests that no entry matches
	// get the status 404.
	Entries []*Entry
	// Access is what the requests require, or nil. If the host is closed, its requests get
	// the status 403 and none of the entries.
	Access *Requirement
	// Domain is set if only hosts with one more label than the domain are served, and all
	// others are closed; for example ".example.com".
	Domain string
}

// IsClosed reports whether no host that the hostname covers is served.
func (h *Host) IsClosed() bool {
	return h.Access.IsClosed() || h.Domain != "" && isDeeper(h.Hostname, h.Domain)
}

// Hosts returns one list of entries for each hostname, for data planes that choose a list
// by the most specific hostname and never fall through to the list for a wider hostname.
// It therefore repeats the entries for wider hostnames in the same group. Hostnames in
// [Table.Access] and in also get a list too if a group covers them. The lists are in the
// order of [CompareGroups]. The caller does not change them.
func (t *Table) Hosts(also ...string) []*Host {
	hosts := t.known.find(also)
	if hosts == nil {
		hosts = t.newHosts(also)
		t.known.keep(also, hosts)
	}
	return hosts
}

func (t *Table) newHosts(also []string) []*Host {
	groups := make(map[string]Index, len(t.Groups))
	for i := range t.Groups {
		groups[t.Groups[i].Hostname] = t.Groups[i].Index()
	}
	hostnames := t.Hostnames(also...)
	hosts := make([]*Host, 0, len(hostnames))
	for _, hostname := range hostnames {
		owner, _ := MostSpecific(groups, hostname)
		hosts = append(hosts, &Host{Hostname: hostname, Entries: groups[owner].EntriesFor(hostname), Access: t.Access.Of(hostname), Domain: t.Access.Domain(hostname)})
	}
	return hosts
}

// Hostnames returns the hostnames of [Table.Hosts], in the same order.
func (t *Table) Hostnames(also ...string) []string {
	groups, hostnames := make(map[string]struct{}, len(t.Groups)), map[string]struct{}{}
	for i := range t.Groups {
		g := &t.Groups[i]
		groups[g.Hostname], hostnames[g.Hostname] = struct{}{}, struct{}{}
		for e := range g.all() {
			hostnames[e.Hostname] = struct{}{}
		}
	}
	for _, hostname := range slices.AppendSeq(also, maps.Keys(t.Access)) {
		if _, covered := MostSpecific(groups, hostname); covered {
			hostnames[hostname] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(hostnames), CompareGroups)
}

// Index finds the entries of a group by hostname.
type Index struct {
	group      *Group
	byHostname map[string]*indexed
	redirects  map[string][]int // positions in Redirects, by hostname
}

// indexed has the entries for one hostname, by position.
type indexed struct {
	// all are the entries whose routes are not confined. confined are the others, by
	// tenant.
	all      []int
	confined map[string][]int
	// tenants are the tenants of all entries and Redirects, each once.
	tenants []string
	// answered are the schemes for which an entry matches every request.
	answered Schemes
}

// Index prepares the entries for lookups by hostname.
func (g *Group) Index() Index {
	x := Index{group: g, byHostname: map[string]*indexed{}, redirects: map[string][]int{}}
	for i, e := range g.Redirects {
		x.redirects[e.Hostname] = append(x.redirects[e.Hostname], i)
		x.named(e)
	}
	for i, e := range g.Entries {
		x.named(e).add(e, i)
	}
	return x
}

// named returns the indexed entries for the entry's hostname, and adds the tenant that
// names it.
func (x Index) named(e *Entry) *indexed {
	n, tenant := x.byHostname[e.Hostname], e.served().Tenant
	if n == nil {
		n = &indexed{}
		x.byHostname[e.Hostname] = n
	}
	if !slices.Contains(n.tenants, tenant) {
		n.tenants = append(n.tenants, tenant)
	}
	return n
}

// served returns the route that has brought the entry to its hostname.
func (e *Entry) served() *Route {
	if e.InsteadOf.Route != nil {
		return e.InsteadOf.Route
	}
	return e.Source.Route
}

func (n *indexed) add(e *Entry, position int) {
	route := e.served()
	if e.InsteadOf.Route == nil && e.Match.MatchesAll() {
		n.answered = n.answered.With(e.Scheme) // another one can come before entries for wider hostnames
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

// EntriesFor returns the entries that requests for the hostname can reach, in order,
// after the Redirects that cover it. The entries for a narrower hostname come before the
// entries for a wider one, so a match for every request shadows the wider ones. Entries
// from a [Route] that is Confined shadow others even where they do not apply, so that no
// entry takes their place. They apply to a hostname if their tenant has a route that
// names the most specific hostname that covers it.
func (x Index) EntriesFor(hostname string) []*Entry {
	entries := x.redirectsFor(hostname)
	named, ok := MostSpecific(x.byHostname, hostname)
	if !ok {
		return entries
	}
	tenants := x.byHostname[named].tenants
	positions, answered := x.byHostname[named].appendFor(tenants, nil), x.byHostname[named].answered
	for wide := range WiderHostnames(named) {
		if answered.HasBoth() {
			break
		}
		if n := x.byHostname[wide]; n != nil {
			positions, answered = n.appendFor(tenants, positions), answered|n.answered
		}
	}
	return appendAt(entries, x.group.Entries, positions)
}

// redirectsFor returns the Redirects that cover the hostname, in order.
func (x Index) redirectsFor(hostname string) []*Entry {
	if len(x.redirects) == 0 {
		return []*Entry{} // most groups
	}
	positions := slices.Clone(x.redirects[hostname])
	for wide := range WiderHostnames(hostname) {
		positions = append(positions, x.redirects[wide]...)
	}
	return appendAt([]*Entry{}, x.group.Redirects, positions)
}

// appendAt appends the entries at the positions, in order.
func appendAt(to, from []*Entry, positions []int) []*Entry {
	slices.Sort(positions)
	to = slices.Grow(to, len(positions))
	for _, position := range positions {
		to = append(to, from[position])
	}
	return to
}
