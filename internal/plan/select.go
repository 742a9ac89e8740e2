package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// Select removes all other Gateways from the plan. It keeps the complete statuses of
// the Gateway, its ListenerSets and the routes that attach to them. If the plan does
// not contain the Gateway, the error explains why and lists the plan's Gateways.
//
// Call Select after [Build]: the status of a Gateway also depends on the hostnames of
// the others.
func (p *Plan) Select(name types.NamespacedName) error {
	i := slices.IndexFunc(p.Gateways, func(g Gateway) bool { return g.Namespace == name.Namespace && g.Name == name.Name })
	reported := slices.DeleteFunc(slices.Clone(p.Reported), func(r ReportedStatus) bool { return r.gateway != name })
	if i < 0 && len(reported) > 0 {
		p.selectReported(reported)
		return nil
	}
	if i < 0 {
		return p.notPlannedError(name)
	}
	p.Reported = nil
	p.terminating, p.selected = nil, true
	p.restrict(p.Gateways[i:i+1], nil)
	return nil
}

// For returns the part of the plan on which the answer to the request depends: the Gateways
// with a listener for its host, with their statuses and mistakes, and the mistakes in routes
// that would serve the host, or whose Gateway the user may not read. If no Gateway has such a listener, it returns the whole plan.
func (p *Plan) For(request routing.Request) *Plan {
	explanation := p.Explain(request)
	if len(explanation.Traces)+len(explanation.Reported) == 0 {
		return p
	}
	var gateways []Gateway
	for i := range p.Gateways {
		g := &p.Gateways[i]
		if slices.ContainsFunc(explanation.Traces, func(t Trace) bool { return t.Namespace == g.Namespace && t.Name == g.Name }) {
			gateways = append(gateways, *g)
		}
	}
	detached := map[Owner]bool{}
	for _, route := range explanation.Detached {
		detached[route.Route] = true
	}
	part := *p
	for i := range explanation.Reported {
		detached[explanation.Reported[i].Object] = true
	}
	part.restrict(gateways, detached)
	part.Reported = explanation.Reported
	return &part
}

// restrict removes all Gateways except the given ones, the statuses that do not depend on
// them, and the mistakes in objects that are neither theirs nor among the others.
func (p *Plan) restrict(gateways []Gateway, others map[Owner]bool) {
	p.Mistakes = slices.DeleteFunc(slices.Clone(p.Mistakes), func(m Mistake) bool {
		return !others[m.Object] && !slices.ContainsFunc(gateways, func(g Gateway) bool { return g.concerns(&m) })
	})
	p.Statuses = slices.DeleteFunc(slices.Clone(p.Statuses), func(s Status) bool {
		owner := gateway.Owner{Kind: s.Kind, NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
		return !slices.ContainsFunc(gateways, func(g Gateway) bool { return g.reported[owner] })
	})
	p.Gateways = gateways
}

// selectReported removes everything but the statuses of objects of one Gateway, about which
// no decision is possible.
func (p *Plan) selectReported(reported []ReportedStatus) {
	objects := map[Owner]bool{}
	for i := range reported {
		objects[reported[i].Object] = true
	}
	p.terminating, p.selected, p.Reported = nil, true, reported
	p.restrict([]Gateway{}, objects)
}

// notPlannedError returns the error about a Gateway that the plan does not contain.
func (p *Plan) notPlannedError(name types.NamespacedName) error {
	reason, exists := p.unserved[name]
	if undecided := p.undecided.reason(state.GatewayKey(name.Namespace, name.Name)); undecided != "" {
		reason = undecided
	} else if !exists {
		reason = "not found"
	}
	if strings.HasSuffix(reason, "?") { // a suggestion is more helpful than the list of Gateways
		return fmt.Errorf("Gateway %s: %s", name, reason)
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
