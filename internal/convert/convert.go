// Package convert translates a cloudflared configuration into Gateway API objects and a
// TunnelConfiguration that answer the same requests with the same backends.
//
// cloudflared uses the first rule that matches, while routes are ordered by how specific
// they are. Therefore, every hostname gets a listener and routes with all the rules that
// its requests can reach, in cloudflared's order, also the rules for wider hostnames.
// What the objects cannot express becomes a [Note]; its requests get an error and never
// fall through to another rule.
package convert

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Options configure the objects.
type Options struct {
	// GatewayNamespace and GatewayName name the Gateway.
	GatewayNamespace, GatewayName string
	// GatewayClass is the Gateway's class. If it is empty, Convert uses DefaultClass, or
	// adds a class for settings that only a class can have.
	GatewayClass string
	// DefaultClass is the class that the chart installs.
	DefaultClass string
	// ControllerName and ControllerNamespace identify the controller.
	ControllerName, ControllerNamespace string
	// Namespace is for Services that the configuration names without one; empty if it is
	// not known.
	Namespace string
	// ClusterDomain is the cluster's DNS domain.
	ClusterDomain string
	// ListenerSets puts listeners into ListenerSets beside the routes. Otherwise, the
	// Gateway has all listeners.
	ListenerSets bool
	// DataPlane is the Gateway's data plane.
	DataPlane v1alpha1.DataPlane
}

// Result is a converted configuration.
type Result struct {
	// Documents are the objects, in the order in which they can be applied.
	Documents []Document
	// Notes are in the input's order.
	Notes []Note
	// Rules says for each rule, in the input's order, what it became.
	Rules []ConvertedRule

	backends []backend
}

// ConvertedRule is what a rule became.
type ConvertedRule struct {
	Rule *Rule
	// Targets name the rules in routes, for example "HTTPRoute store/web rule 0".
	Targets []string
	// Changed reports whether a note says that requests for the rule get another answer.
	Changed bool
}

// Differs reports whether the objects do not express everything.
func (r *Result) Differs() bool {
	return slices.ContainsFunc(r.Notes, func(n Note) bool { return n.Kind == NoteDifferent })
}

// converter converts one configuration.
type converter struct {
	Options
	input  *Configuration
	notes  []Note
	routes []ConvertedRule
	// destinations say where each rule's requests go, by its index.
	destinations []destination
	documents    []Document
	listeners    []listener
	entries      []v1alpha1.ListenerConfiguration
	class        v1alpha1.TunnelConfigurationSpec
	names        map[string]bool
	policies     map[string]bool
	// protocols say for each used Service port whether it uses TLS.
	protocols map[backend]bool
	// closed are the hostnames for which each rule returns 500, by the rule's index.
	closed map[int][]string
}

// Convert converts the configuration. The result depends on nothing else than the
// arguments.
func Convert(input *Configuration, o Options) *Result {
	c := &converter{Options: o, input: input, names: map[string]bool{}, policies: map[string]bool{}, protocols: map[backend]bool{}, closed: map[int][]string{}}
	c.notes = slices.Clone(input.notes)
	for i := range input.Rules {
		c.routes = append(c.routes, ConvertedRule{Rule: &input.Rules[i]})
	}
	c.convertConnector()
	c.noteOrigin()
	c.findDestinations()
	c.notePaths()
	groups := c.serve(c.groups())
	c.noteClosed()
	for _, g := range groups {
		c.addGroup(g)
	}
	c.addClass()
	c.addGateway()
	c.reportUnreached()
	c.sortNotes()
	slices.SortStableFunc(c.documents, func(a, b Document) int { return cmp.Compare(a.rank, b.rank) })
	result := &Result{Documents: c.documents, Notes: c.notes, Rules: c.routes}
	for i := range c.destinations {
		if b := c.destinations[i].backend; b != nil {
			result.backends = append(result.backends, *b)
		}
	}
	return result
}

// sortNotes orders the notes like the input, and removes repeated ones.
func (c *converter) sortNotes() {
	slices.SortStableFunc(c.notes, func(a, b Note) int { return cmp.Or(cmp.Compare(a.Line, b.Line), strings.Compare(a.Key, b.Key)) })
	seen := map[Note]bool{}
	c.notes = slices.DeleteFunc(c.notes, func(n Note) bool {
		repeated := seen[n]
		seen[n] = true
		return repeated
	})
}

// reportUnreached reports the rules that get no request because an earlier rule matches
// all of them.
func (c *converter) reportUnreached() {
	for i := range c.routes {
		r, d := c.routes[i].Rule, c.destinations[i]
		switch {
		case len(c.routes[i].Targets) > 0 || !d.reachable || d.noted:
		case d.status == 404:
			c.note(NoteInfo, r, "service", "requests that match no rule get 404 anyway, so this rule is not converted", "")
		default:
			c.note(NoteInfo, r, "", "no request reaches this rule, because earlier rules match first, so it is not converted", "")
		}
	}
}

// isEveryHost reports whether cloudflared's hostname matches every host.
func isEveryHost(hostname string) bool { return hostname == "" || hostname == "*" }

// groups returns the rules by a request's most specific hostname, the widest
// hostname first, so that a group knows whether a wider one is served.
func (c *converter) groups() []*group {
	hostnames := map[string]bool{}
	for i := range c.destinations {
		if c.destinations[i].reachable {
			hostnames[c.destinations[i].hostname] = true
		}
	}
	groups := make([]*group, 0, len(hostnames))
	for hostname := range hostnames {
		groups = append(groups, c.newGroup(hostname))
	}
	slices.SortFunc(groups, func(a, b *group) int { return -routing.CompareGroups(a.hostname, b.hostname) })
	return groups
}
