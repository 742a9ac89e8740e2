package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// unattached are ListenerSets and routes without a parent that exists. They get no
// status, so no status of the plan shows them.
type unattached struct {
	// counts is how many there are of each kind.
	counts map[string]int
	// missingParents are those that do not exist.
	missingParents map[gateway.Owner]bool
	// manifestsOnly is whether manifests were planned without a cluster, which may have
	// the parents.
	manifestsOnly bool
}

func findUnattached(source *state.Source) unattached {
	found := unattached{counts: map[string]int{}, missingParents: map[gateway.Owner]bool{}, manifestsOnly: !source.Live}
	exists, leadsTo := parentsOf(source.Objects)
	for _, object := range source.Objects {
		kind, missing := parentsInSpec(object)
		for i, parent := range missing {
			missing[i] = cmp.Or(leadsTo[parent], parent)
		}
		if len(missing) == 0 || slices.ContainsFunc(missing, func(parent gateway.Owner) bool { return exists[parent] }) {
			continue
		}
		found.counts[kind]++
		for _, parent := range missing {
			found.missingParents[parent] = true
		}
	}
	return found
}

// parentsOf returns the Gateways and ListenerSets that exist, and the Gateway of
// each ListenerSet that has one as its parent.
func parentsOf(objects []client.Object) (exists map[gateway.Owner]bool, leadsTo map[gateway.Owner]gateway.Owner) {
	exists, leadsTo = map[gateway.Owner]bool{}, map[gateway.Owner]gateway.Owner{}
	for _, object := range objects {
		switch o := object.(type) {
		case *gatewayv1.Gateway:
			exists[state.GatewayKey(o.Namespace, o.Name)] = true
		case *gatewayv1.ListenerSet:
			self := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(o)}
			exists[self] = true
			if parent, ok := state.ParentGateway(o); ok {
				leadsTo[self] = parent
			}
		}
	}
	return exists, leadsTo
}

// parentsInSpec returns the parents that the spec of a ListenerSet or a route names,
// and the object's kind: the API server leaves it out of what is listed.
func parentsInSpec(object client.Object) (string, []gateway.Owner) {
	switch o := object.(type) {
	case *gatewayv1.ListenerSet:
		if parent, ok := state.ParentGateway(o); ok {
			return gateway.KindListenerSet, []gateway.Owner{parent}
		}
	case *gatewayv1.HTTPRoute:
		return gateway.KindHTTPRoute, state.RouteParents(o, specOnly)
	case *gatewayv1.GRPCRoute:
		return gateway.KindGRPCRoute, state.RouteParents(o, specOnly)
	}
	return "", nil
}

// specOnly has written no entry of a status.
const specOnly = ""

// Unattached says in one sentence which objects get no status because their parents do
// not exist; empty when there are none. It is empty for a cluster with managed
// Gateways, because the objects may belong to other controllers.
func (p *Plan) Unattached() string {
	if len(p.unattached.missingParents) == 0 || !p.unattached.manifestsOnly && len(p.Gateways) > 0 {
		return ""
	}
	var counts []string
	total := 0
	for _, kind := range []string{gateway.KindListenerSet, gateway.KindHTTPRoute, gateway.KindGRPCRoute} {
		if n := p.unattached.counts[kind]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, plural(kind, n)))
			total += n
		}
	}
	refer := "refer"
	if total == 1 {
		refer = "refers"
	}
	where, advice := "do not exist", ""
	if p.unattached.manifestsOnly {
		where, advice = "are not among the manifests", ": add --context to lay them over a cluster"
	}
	var names []string
	for parent := range p.unattached.missingParents {
		names = append(names, parent.String())
	}
	slices.Sort(names)
	return fmt.Sprintf("%s %s to parents that %s (%s)%s.", strings.Join(counts, " and "), refer, where, abbreviate(names), advice)
}

func plural(kind string, n int) string {
	if n == 1 {
		return kind
	}
	return kind + "s"
}

// abbreviate lists a few of many names.
func abbreviate(names []string) string {
	const few = 3
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// noGatewayMessage says that the controller manages no Gateway, and why it does not manage
// the Gateways that exist.
func (p *Plan) noGatewayMessage() string {
	text := "No Gateway uses this controller."
	var left []string
	for name, why := range p.unserved {
		left = append(left, fmt.Sprintf("Gateway %s: %s", name, why))
	}
	if len(left) > 0 {
		slices.Sort(left)
		text += fmt.Sprintf(" %s.", abbreviate(left))
	}
	return text
}
