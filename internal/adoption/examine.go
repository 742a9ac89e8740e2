package adoption

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Examine returns what the zone contains for the hostname, and whether the controller can
// adopt it.
func Examine(z *Zone, w Wanted) *Candidate {
	c := &Candidate{Gateway: w.Gateway.String(), Zone: z.Name, Name: w.Name, gateway: w.Gateway.NamespacedName}
	found := z.Addresses(w.Name)
	if delegation := z.Delegation(w.Name); delegation != "" {
		c.Problem = fmt.Sprintf("other nameservers answer for the name: zone %s delegates %s with NS records", z.Name, delegation)
		return c
	}
	switch len(found) {
	case 0:
		c.Problem = z.describeMissing(w)
	case 1:
		c.setRecord(z, w, found[0])
	default:
		c.Problem = describeSeveral(found)
	}
	return c
}

// LeadingHere returns the candidates whose records lead to their Gateways and have no valid
// mark. Only the controller has the key to verify a mark: if the status of a Gateway's
// Tunnel counts fewer valid marks than there are marks of this installation, the marks of
// all the Gateway's records are included. For a valid one, the controller does nothing.
func LeadingHere(all []*Candidate, gateways []Gateway) []*Candidate {
	valid := map[types.NamespacedName]bool{}
	for _, g := range gateways {
		marked := 0
		for _, c := range all {
			if c.gateway == g.NamespacedName && c.isMarked(g.ClusterID) {
				marked++
			}
		}
		valid[g.NamespacedName] = g.Managed >= marked
	}
	ids := map[types.NamespacedName]string{}
	for _, g := range gateways {
		ids[g.NamespacedName] = g.ClusterID
	}
	return slices.DeleteFunc(slices.Clone(all), func(c *Candidate) bool {
		return c.Action == "" || !c.LeadsHere || valid[c.gateway] && c.isMarked(ids[c.gateway])
	})
}

// isMarked reports whether the record leads to the Gateway's tunnel directly and has a mark
// of the installation, which may not be valid.
func (c *Candidate) isMarked(clusterID string) bool {
	return c.Action == Mark && c.Record.Installation == clusterID
}

// setRecord sets the only record that determines where the name leads.
func (c *Candidate) setRecord(z *Zone, w Wanted, r provider.Record) {
	c.Record = &Record{ID: r.ID, Type: r.Type, Content: r.Content, Proxied: r.Proxied, Comment: r.Comment, Installation: dns.Installation(r.Comment)}
	here := w.Gateway.Tunnel.Hostname()
	c.LeadsHere = z.Leads(w.Name) == here
	switch {
	case dns.LeadsDirectly(r, here):
		c.Action = Mark
	case !w.Served:
		c.Problem = "the record would be replaced, but the Gateway serves no route for the hostname yet"
	default:
		c.Action = Replace
	}
	if owner := c.Record.Installation; owner != "" && owner != w.Gateway.ClusterID {
		c.Notes = append(c.Notes, fmt.Sprintf("The comment names installation %s. If it still runs, it creates the record again when this one is removed. Stop it, or remove the hostname there.", owner))
	}
	if registry := z.registry(w.Name); registry != "" {
		c.Notes = append(c.Notes, fmt.Sprintf("external-dns claims the record with the TXT record %s, and would remove the mark. Stop external-dns, adopt the record, delete the TXT record, and start external-dns again.", registry))
	}
}

// describeMissing explains that the name has no record.
func (z *Zone) describeMissing(w Wanted) string {
	wildcard := z.Wildcard(w.Name)
	switch {
	case len(z.Addresses(wildcard)) == 0:
		return "no A, AAAA or CNAME record has this name, so there is nothing to adopt: the controller creates the record"
	case z.Leads(wildcard) == w.Gateway.Tunnel.Hostname():
		return fmt.Sprintf("no record has this name, so there is nothing to adopt: the wildcard %s leads it to the Gateway", wildcard)
	default:
		return fmt.Sprintf("no record has this name. The wildcard %s answers for it. Adopt the wildcard if a Gateway uses it, or create a record with this name", wildcard)
	}
}

// describeSeveral explains that several records share the name.
func describeSeveral(found []provider.Record) string {
	var types []string
	for _, r := range found {
		types = append(types, r.Type)
	}
	slices.Sort(types)
	return fmt.Sprintf("%d records have this name (%s), but a CNAME record must be the only one. Delete all but one of them, and adopt it; "+
		"or delete all of them, and the controller creates the record", len(found), strings.Join(slices.Compact(types), ", "))
}
