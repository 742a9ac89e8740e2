package gateway

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// Excess returns the message when the data plane cannot change from Envoy to ingress
// rules yet: what exceeds the limits for ingress rules, but not the limits for current's
// data plane, and what to do. It is empty when r refuses nothing that current admits, and
// when r is for Envoy: a change to Envoy does not wait for limits. Both are results for
// the same Snapshot, apart from its DataPlane.
func (r *Result) Excess(current *Result) string {
	if r.DataPlane != v1alpha1.DataPlaneIngressRules || r.Usage == nil {
		return "" // Usage is nil when the limits are not known
	}
	routes, rules := r.excessRoutes(current)
	listeners := r.excessListeners(current)
	const remedy = "Envoy keeps serving until you remove routes or raise the limit."
	switch {
	case routes == 0 && listeners == 0:
		return ""
	case rules > r.Usage.Limits.RulesPerTunnel:
		return fmt.Sprintf("The Gateway needs %d ingress rules, but limits.rulesPerTunnel of the GatewayClass is %d. %s", rules, r.Usage.Limits.RulesPerTunnel, remedy)
	default:
		return fmt.Sprintf("With ingress rules, objects of the Gateway exceed limits of the GatewayClass (routes: %d, listeners: %d); tunnel-gateway plan lists them. %s", routes, listeners, remedy)
	}
}

// excessRoutes counts the routes that only r refuses, and the rules that r needs to serve
// them, too.
func (r *Result) excessRoutes(current *Result) (routes, rules int) {
	type name struct {
		kind string
		types.NamespacedName
	}
	admitted := make(map[name]bool, len(current.Routes))
	for i := range current.shares {
		route := current.shares[i].route
		admitted[name{route.Kind, route.NamespacedName}] = !current.shares[i].isRefused()
	}
	rules = r.Usage.Rules
	for i := range r.shares {
		s := &r.shares[i]
		if s.isRefused() && admitted[name{s.route.Kind, s.route.NamespacedName}] {
			routes++
			rules += s.rules()
		}
	}
	return routes, rules
}

// excessListeners counts the listeners that only r rejects because of a limit.
func (r *Result) excessListeners(current *Result) int {
	exceeds := func(l *Listener) bool {
		return l.Rejected != nil && l.Rejected.Reason == conditions.ReasonLimitExceeded
	}
	type name struct {
		owner Owner
		name  string
	}
	inBoth := map[name]bool{}
	for _, l := range current.Listeners {
		inBoth[name{l.Owner, string(l.Spec.Name)}] = exceeds(l)
	}
	count := 0
	for _, l := range r.Listeners {
		if exceeds(l) && !inBoth[name{l.Owner, string(l.Spec.Name)}] {
			count++
		}
	}
	return count
}
