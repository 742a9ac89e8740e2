package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// ChangeKind says how something differs between two plans. The zero value is no difference.
type ChangeKind string

// The kinds of changes. Better and Worse are about the conditions of objects.
const (
	Added   ChangeKind = "Added"
	Removed ChangeKind = "Removed"
	Changed ChangeKind = "Changed"
	Better  ChangeKind = "Better"
	Worse   ChangeKind = "Worse"
)

// Changes are how a plan differs from the plan before. Its JSON encoding is stable.
type Changes struct {
	Gateways []GatewayChanges `json:"gateways"`
	// Objects are the objects whose conditions become better or worse.
	Objects []ObjectChange `json:"objects"`
}

// GatewayChanges are the changes of one Gateway.
type GatewayChanges struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Change is empty if nothing about the Gateway differs.
	Change ChangeKind `json:"change,omitempty"`
	// Hostnames are the hostnames whose row of the table differs.
	Hostnames []HostnameChange `json:"hostnames"`
	// Routes is a unified diff between the routing tables, and Configuration one between the
	// tunnel configurations in YAML, both with headers; empty if they are equal.
	Routes        string `json:"routes,omitempty"`
	Configuration string `json:"configuration,omitempty"`
}

// HostnameChange is a hostname that comes, goes, or has another owner, state or Access.
type HostnameChange struct {
	Hostname string     `json:"hostname"`
	Change   ChangeKind `json:"change"`
	// Before is nil for a hostname that comes, and After for a hostname that goes.
	Before *HostnameSummary `json:"before,omitempty"`
	After  *HostnameSummary `json:"after,omitempty"`
}

// HostnameSummary is what counts for a change of a hostname. Owners and States are those of
// the listeners, in the order of the table; equal neighbors are there once.
type HostnameSummary struct {
	Owners []Owner  `json:"owners"`
	States []string `json:"states"`
	Access string   `json:"access"`
}

func newHostnameSummary(row *HostnameRow) *HostnameSummary {
	s := &HostnameSummary{Owners: []Owner{}, States: []string{}, Access: row.Access}
	for i := range row.Listeners {
		s.Owners = append(s.Owners, row.Listeners[i].Owner)
		s.States = append(s.States, row.Listeners[i].State())
	}
	s.Owners, s.States = slices.Compact(s.Owners), slices.Compact(s.States)
	return s
}

func (s *HostnameSummary) equal(other *HostnameSummary) bool {
	return slices.Equal(s.Owners, other.Owners) && slices.Equal(s.States, other.States) && s.Access == other.Access
}

// ChangesFrom returns how the plan differs from the plan before. It needs nothing from
// Cloudflare.
func (p *Plan) ChangesFrom(before *Plan) (*Changes, error) {
	c := &Changes{Gateways: []GatewayChanges{}, Objects: p.objectChanges(before)}
	hostnames := p.hostnameChanges(before)
	for _, pair := range gatewayPairs(before, p) {
		g, err := pair.changes()
		if err != nil {
			return nil, err
		}
		if g.Hostnames = hostnames[g.Namespace+"/"+g.Name]; g.Hostnames == nil {
			g.Hostnames = []HostnameChange{}
		}
		if g.Change == "" && len(g.Hostnames)+len(g.Routes)+len(g.Configuration) > 0 {
			g.Change = Changed
		}
		c.Gateways = append(c.Gateways, g)
	}
	return c, nil
}

// gatewayPair is a Gateway in two plans; nil where it is missing.
type gatewayPair struct{ before, after *Gateway }

// gatewayPairs returns the Gateways of both plans, sorted by name.
func gatewayPairs(before, after *Plan) []gatewayPair {
	var pairs []gatewayPair
	index := map[string]int{}
	for i := range after.Gateways {
		g := &after.Gateways[i]
		index[g.Namespace+"/"+g.Name] = len(pairs)
		pairs = append(pairs, gatewayPair{after: g})
	}
	for i := range before.Gateways {
		g := &before.Gateways[i]
		if j, ok := index[g.Namespace+"/"+g.Name]; ok {
			pairs[j].before = g
			continue
		}
		pairs = append(pairs, gatewayPair{before: g})
	}
	slices.SortFunc(pairs, func(a, b gatewayPair) int {
		x, y := cmp.Or(a.after, a.before), cmp.Or(b.after, b.before)
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return pairs
}

// changes returns the Gateway's changes without those of hostnames.
func (p gatewayPair) changes() (GatewayChanges, error) {
	g := cmp.Or(p.after, p.before)
	c := GatewayChanges{Namespace: g.Namespace, Name: g.Name}
	switch {
	case p.before == nil:
		c.Change = Added
	case p.after == nil:
		c.Change = Removed
	}
	name := fmt.Sprintf("Gateway %s/%s", g.Namespace, g.Name)
	c.Routes = tableDiff(p.before.table(), p.after.table(), name)
	var err error
	c.Configuration, err = unifiedDiff(p.before.configuration(), p.after.configuration(),
		diffHeader("configuration of "+name, p.before == nil, "in the cluster"), diffHeader("configuration of "+name, p.after == nil, "with the manifests"))
	return c, err
}

// diffHeader names one side of a difference, such as "no routes in the cluster".
func diffHeader(what string, isMissing bool, where string) string {
	if isMissing {
		noun, _, _ := strings.Cut(what, " ")
		what = "no " + noun
	}
	return terminal.Escape(what + " " + where)
}

// table returns the Gateway's routing table, or nil. g can be nil.
func (g *Gateway) table() *routing.Table {
	if g == nil {
		return nil
	}
	return g.result.Table
}

// configuration returns the Gateway's configuration, which is empty without one. g can be nil.
func (g *Gateway) configuration() provider.Configuration {
	if g == nil || g.Config == nil {
		return provider.Configuration{}
	}
	return *g.Config
}

// hostnameChanges returns the changes of hostnames, by the Gateway's "namespace/name".
func (p *Plan) hostnameChanges(before *Plan) map[string][]HostnameChange {
	old, all := before.NewHostnames(), p.NewHostnames()
	changes := map[string][]HostnameChange{}
	for i := range all.Rows {
		row := &all.Rows[i]
		change := HostnameChange{Hostname: row.Hostname, Change: Added, After: newHostnameSummary(row)}
		if earlier := old.Find(row.Gateway, row.Hostname); earlier != nil {
			change.Change, change.Before = Changed, newHostnameSummary(earlier)
		}
		if change.Before == nil || !change.Before.equal(change.After) {
			changes[row.Gateway] = append(changes[row.Gateway], change)
		}
	}
	for i := range old.Rows {
		if row := &old.Rows[i]; all.Find(row.Gateway, row.Hostname) == nil {
			changes[row.Gateway] = append(changes[row.Gateway], HostnameChange{Hostname: row.Hostname, Change: Removed, Before: newHostnameSummary(row)})
		}
	}
	for _, list := range changes {
		slices.SortFunc(list, func(a, b HostnameChange) int { return compareHostnames(a.Hostname, b.Hostname) })
	}
	return changes
}
