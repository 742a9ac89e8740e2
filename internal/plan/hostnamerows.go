package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// Hostnames are the effective hostname tables of all Gateways in a plan, by hostname. They do
// not change, so they can be read concurrently.
type Hostnames struct {
	// Rows are in alphabetical order, a wildcard below its domain, then by Gateway.
	Rows []HostnameRow

	index map[hostnameKey]int // in Rows
}

type hostnameKey struct{ gateway, hostname string }

// HostnameRow is a hostname that a listener of a Gateway has, that a route has on one of its
// listeners, or for which Access is configured.
type HostnameRow struct {
	// Gateway is the Gateway's "namespace/name".
	Gateway string
	// Hostname is empty for every host.
	Hostname string
	// Listeners are the listeners with the hostname. If there are none, they are the
	// listeners that receive its requests, for a wider hostname.
	Listeners []HostnameListener
	// Access is what requests for the hostname require, in the words of the table; empty if no
	// listener receives them.
	Access string
	// Routes are the routes with an entry for requests for the hostname, in the order in
	// which the entries are tried.
	Routes []Owner
	// AlsoOn are the other Gateways with the hostname.
	AlsoOn []string

	plan *hostnamePlan
	host *routing.Host // nil if nothing is served
	text string        // in lower case, for a search
}

// HostnameListener is a listener with its state.
type HostnameListener struct {
	Listener
	// Message describes the listener's problem; empty if there is none.
	Message string
}

// State returns the reason of the listener's problem, or "served".
func (l *HostnameListener) State() string { return l.state() }

// hostnamePlan has what the rows of one Gateway share.
type hostnamePlan struct {
	gateway   *Gateway
	name      string
	listeners map[string][]HostnameListener // by hostname
	hosts     []*routing.Host
	groups    map[string]*routing.Group
	access    map[string]*HostnameAccess
}

// NewHostnames returns the hostnames of all Gateways.
func (p *Plan) NewHostnames() *Hostnames {
	h := &Hostnames{index: map[hostnameKey]int{}}
	gateways := map[string][]string{} // by hostname
	for i := range p.Gateways {
		for _, row := range newHostnamePlan(&p.Gateways[i]).rows() {
			gateways[row.Hostname] = append(gateways[row.Hostname], row.Gateway)
			h.Rows = append(h.Rows, row)
		}
	}
	slices.SortFunc(h.Rows, func(a, b HostnameRow) int {
		return cmp.Or(compareHostnames(a.Hostname, b.Hostname), strings.Compare(a.Gateway, b.Gateway))
	})
	for i := range h.Rows {
		row := &h.Rows[i]
		h.index[hostnameKey{row.Gateway, row.Hostname}] = i
		if all := gateways[row.Hostname]; len(all) > 1 {
			row.AlsoOn = slices.DeleteFunc(slices.Clone(all), func(name string) bool { return name == row.Gateway })
		}
	}
	return h
}

// compareHostnames compares hostnames in alphabetical order, a wildcard below its domain.
func compareHostnames(a, b string) int {
	return cmp.Or(strings.Compare(strings.TrimPrefix(a, "*."), strings.TrimPrefix(b, "*.")), strings.Compare(b, a))
}

// Find returns the row of the Gateway "namespace/name" for the hostname, or nil.
func (h *Hostnames) Find(gateway, hostname string) *HostnameRow {
	if i, ok := h.index[hostnameKey{gateway, hostname}]; ok {
		return &h.Rows[i]
	}
	return nil
}

// On returns all rows for the hostname.
func (h *Hostnames) On(hostname string) []*HostnameRow {
	var all []*HostnameRow
	for i := range h.Rows {
		if h.Rows[i].Hostname == hostname {
			all = append(all, &h.Rows[i])
		}
	}
	return all
}

// Similar returns rows with a similar hostname, the most similar first, at most limit.
func (h *Hostnames) Similar(hostname string, limit int) []*HostnameRow {
	names := make([]string, len(h.Rows))
	for i := range h.Rows {
		names[i] = h.Rows[i].Hostname
	}
	var all []*HostnameRow
	for _, name := range suggest.Similar(hostname, names, limit) {
		all = append(all, h.On(name)...)
	}
	return all[:min(limit, len(all))]
}

func newHostnamePlan(g *Gateway) *hostnamePlan {
	p := &hostnamePlan{
		gateway: g, name: g.Namespace + "/" + g.Name, listeners: map[string][]HostnameListener{}, access: map[string]*HostnameAccess{},
	}
	for i, l := range g.resultListeners() {
		p.listeners[l.Hostname()] = append(p.listeners[l.Hostname()], HostnameListener{g.Listeners[i], messageOf(l)})
	}
	if t := g.result.Table; t != nil {
		p.hosts, p.groups = t.Hosts(), groupsOf(t)
	}
	for i := range g.Access {
		p.access[g.Access[i].Hostname] = &g.Access[i]
	}
	return p
}

// rows returns a row for each hostname, in any order.
func (p *hostnamePlan) rows() []HostnameRow {
	rows := make([]HostnameRow, 0, max(len(p.hosts), len(p.listeners)))
	served := make(map[string]bool, len(p.hosts))
	for i := range p.hosts {
		served[p.hosts[i].Hostname] = true
		rows = append(rows, p.row(p.hosts[i].Hostname, p.hosts[i]))
	}
	for hostname := range p.listeners {
		if !served[hostname] {
			rows = append(rows, p.row(hostname, nil))
		}
	}
	return rows
}

func (p *hostnamePlan) row(hostname string, host *routing.Host) HostnameRow {
	row := HostnameRow{Gateway: p.name, Hostname: hostname, Listeners: p.listeners[hostname], plan: p, host: host}
	if len(row.Listeners) == 0 {
		row.Listeners = p.listeners[row.Receiver()]
	}
	if _, served := routing.MostSpecific(p.groups, hostname); served {
		row.Access = p.accessText(hostname)
	}
	if host != nil {
		row.Routes = routesOf(host.Entries)
	}
	row.text = strings.ToLower(strings.Join(row.names(), "\n"))
	return row
}

func (p *hostnamePlan) accessText(hostname string) string {
	if h := p.access[hostname]; h != nil {
		return h.text()
	}
	return p.gateway.otherAccessText(hostname)
}

// routesOf returns the routes of the entries, each once.
func routesOf(entries []*routing.Entry) []Owner {
	var all []Owner
	seen := map[*routing.Route]bool{}
	for _, e := range entries {
		if route := e.Source.Route; !seen[route] {
			seen[route] = true
			all = append(all, Owner{route.Kind, route.Namespace, route.Name})
		}
	}
	return all
}

// names are the texts that a search finds.
func (r *HostnameRow) names() []string {
	names := []string{orStar(r.Hostname)}
	for i := range r.Listeners {
		names = append(names, r.Listeners[i].Owner.String())
	}
	for _, route := range r.Routes {
		names = append(names, route.String())
	}
	return names
}

// Mentions reports whether the hostname, an owner or a route contains the text, which is in
// lower case.
func (r *HostnameRow) Mentions(text string) bool { return strings.Contains(r.text, text) }

// Receiver returns the hostname of the listeners that receive requests for the hostname. It
// is another one if only a route has the hostname.
func (r *HostnameRow) Receiver() string {
	receiver, _ := routing.MostSpecific(r.plan.groups, r.Hostname)
	return receiver
}

// IsInherited reports whether only routes have the hostname, and the Listeners have a wider
// one.
func (r *HostnameRow) IsInherited() bool { return len(r.plan.listeners[r.Hostname]) == 0 }

// State returns "served", or the reason why no listener serves the hostname.
func (r *HostnameRow) State() string {
	states := r.States()
	if len(states) == 0 || slices.Contains(states, stateServed) {
		return stateServed
	}
	return states[0]
}

// States are the states of the listeners, each once.
func (r *HostnameRow) States() []string {
	var all []string
	for i := range r.Listeners {
		if state := r.Listeners[i].State(); !slices.Contains(all, state) {
			all = append(all, state)
		}
	}
	return all
}

// HasState reports whether a listener has the state.
func (r *HostnameRow) HasState(state string) bool {
	return slices.ContainsFunc(r.Listeners, func(l HostnameListener) bool { return l.State() == state })
}

// AccessState is the first word of Access.
func (r *HostnameRow) AccessState() string {
	state, _, _ := strings.Cut(r.Access, ":")
	return state
}

// Concerns reports whether a listener or a route of the row is in the namespace.
func (r *HostnameRow) Concerns(namespace string) bool {
	return slices.ContainsFunc(r.Listeners, func(l HostnameListener) bool { return l.Owner.Namespace == namespace }) ||
		slices.ContainsFunc(r.Routes, func(route Owner) bool { return route.Namespace == namespace })
}

// Requirement returns what requests for the hostname require; nil if it is simply open.
func (r *HostnameRow) Requirement() *HostnameAccess {
	if r.plan.gateway.result.Table == nil {
		return nil
	}
	if hostname, ok := routing.MostSpecific(r.plan.access, r.Hostname); ok {
		return r.plan.access[hostname]
	}
	return nil
}

// IsClosed reports whether all requests for the hostname get the status 403.
func (r *HostnameRow) IsClosed() bool { return r.host != nil && r.host.IsClosed() }
