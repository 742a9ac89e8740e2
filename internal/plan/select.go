package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Select removes all other Gateways from the plan. It keeps the complete statuses of
// the Gateway, its ListenerSets and the routes that attach to them. If the plan does
// not contain the Gateway, the error explains why and lists the plan's Gateways.
//
// Call Select after [Build]: the status of a Gateway also depends on the hostnames of
// the others.
func (p *Plan) Select(name types.NamespacedName) error {
	i := slices.IndexFunc(p.Gateways, func(g Gateway) bool { return g.Namespace == name.Namespace && g.Name == name.Name })
	if i < 0 {
		return p.notPlannedError(name)
	}
	p.Gateways, p.terminating, p.selected = p.Gateways[i:i+1], nil, true
	p.Mistakes = p.mistakesOf(&p.Gateways[0])
	p.Statuses = slices.DeleteFunc(p.Statuses, func(s Status) bool {
		owner := gateway.Owner{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
		return !p.Gateways[0].reported[owner]
	})
	return nil
}

// notPlannedError returns the error about a Gateway that the plan does not contain.
func (p *Plan) notPlannedError(name types.NamespacedName) error {
	reason, exists := p.unserved[name]
	if !exists {
		reason = "not found"
	}
	if len(p.Gateways) == 0 {
		return fmt.Errorf("Gateway %s: %s; no Gateway uses this controller", name, reason)
	}
	names := make([]string, len(p.Gateways))
	for i, g := range p.Gateways {
		names[i] = g.Namespace + "/" + g.Name
	}
	return fmt.Errorf("Gateway %s: %s; Gateways of this controller: %s", name, reason, strings.Join(names, ", "))
}
