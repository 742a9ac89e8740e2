package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Select leaves one Gateway in the plan, and the statuses that its decision is
// part of: those of itself, its ListenerSets and the routes at them, each as a
// whole. Where the Gateway is not in the plan, the error says why and names
// those that are.
//
// All Gateways have been decided about, because a hostname that two of them
// serve is said of both.
func (p *Plan) Select(name types.NamespacedName) error {
	i := slices.IndexFunc(p.Gateways, func(g Gateway) bool { return g.Namespace == name.Namespace && g.Name == name.Name })
	if i < 0 {
		return p.notPlannedError(name)
	}
	p.Gateways, p.terminating, p.unattached = p.Gateways[i:i+1], nil, unattached{}
	p.Statuses = slices.DeleteFunc(p.Statuses, func(s Status) bool {
		owner := gateway.Owner{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
		return !p.Gateways[0].reported[owner]
	})
	return nil
}

// notPlannedError says why a Gateway is not in the plan.
func (p *Plan) notPlannedError(name types.NamespacedName) error {
	why, exists := p.unserved[name]
	if !exists {
		why = "not found"
	}
	if len(p.Gateways) == 0 {
		return fmt.Errorf("Gateway %s: %s; no Gateway uses this controller", name, why)
	}
	names := make([]string, len(p.Gateways))
	for i, g := range p.Gateways {
		names[i] = g.Namespace + "/" + g.Name
	}
	return fmt.Errorf("Gateway %s: %s; the Gateways of this controller are %s", name, why, strings.Join(names, ", "))
}
