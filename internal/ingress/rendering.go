package ingress

import (
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Rendering is a routing table with the ingress rules for its data plane. Nothing changes it.
type Rendering struct {
	plane v1alpha1.DataPlane
	table *routing.Table
	rules []Rule // nil with Envoy, which has few
}

// Render returns the rendering of a table, or nil for a nil table. before is an earlier one, or
// nil: it makes this one faster, and does not affect it. For the same table, Render returns before.
func Render(plane v1alpha1.DataPlane, t *routing.Table, before *Rendering) *Rendering {
	switch {
	case t == nil:
		return nil
	case before != nil && before.plane == plane && before.table == t:
		return before
	case plane == v1alpha1.DataPlaneEnvoy:
		return &Rendering{plane: plane, table: t}
	}
	next := &Rendering{plane: plane, table: t}
	if replacements, ok := before.replacements(next); ok {
		next.rules = before.withReplacements(replacements)
	} else {
		next.rules = Rules(t)
	}
	return next
}

// Configuration returns the tunnel's configuration. It returns nil for a nil Rendering: the tunnel
// then keeps its last configuration.
func (r *Rendering) Configuration() *provider.Configuration {
	switch {
	case r == nil:
		return nil
	case r.plane == v1alpha1.DataPlaneEnvoy:
		return EnvoyConfiguration(r.table)
	}
	return newConfiguration(r.table, r.rules)
}

func newConfiguration(t *routing.Table, rules []Rule) *provider.Configuration {
	c := &provider.Configuration{Ingress: make([]provider.IngressRule, len(rules))}
	if t.OriginRequest != nil {
		c.OriginRequest = renderOriginRequest(*t.OriginRequest)
	}
	for i := range rules {
		c.Ingress[i] = rules[i].ingressRule()
	}
	return c
}

func (r *Rule) ingressRule() provider.IngressRule {
	rule := provider.IngressRule{Hostname: r.Hostname, Path: r.Path, Service: r.Service}
	if r.OriginRequest != nil {
		rule.OriginRequest = *r.OriginRequest
	}
	return rule
}

// replacements returns the entries that the next rendering replaces, with the next ones. It
// returns false if the renderings differ in more than the entries' actions, which determine
// neither which rules there are nor their order.
func (r *Rendering) replacements(next *Rendering) (map[*routing.Entry]*routing.Entry, bool) {
	if r == nil || r.plane != next.plane || r.table.ClusterDomain != next.table.ClusterDomain ||
		r.table.OriginRequest != next.table.OriginRequest || !maps.Equal(r.table.Access, next.table.Access) {
		return nil, false
	}
	replacements := map[*routing.Entry]*routing.Entry{}
	haveSameRules := slices.EqualFunc(r.table.Groups, next.table.Groups, func(a, b routing.Group) bool {
		return a.Hostname == b.Hostname && a.Namespace == b.Namespace && slices.EqualFunc(a.Entries, b.Entries, func(x, y *routing.Entry) bool {
			if x != y {
				replacements[x] = y
			}
			return x == y || differsOnlyInAction(x, y)
		})
	})
	return replacements, haveSameRules
}

func differsOnlyInAction(a, b *routing.Entry) bool {
	other := *b
	other.Action = a.Action
	return *a == other
}

// withReplacements returns the rules with other entries in the place of some.
func (r *Rendering) withReplacements(replacements map[*routing.Entry]*routing.Entry) []Rule {
	rules := slices.Clone(r.rules)
	b := newBuilder(r.table, 0, 0)
	for i := range rules {
		if next := replacements[rules[i].Entry]; next != nil {
			rules[i] = b.entryRule(next, rules[i].Hostname)
		}
	}
	return rules
}
