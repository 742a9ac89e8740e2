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

// unattached describes the ListenerSets and routes whose parents do not exist. They
// get no status, so the statuses of a plan do not contain them.
type unattached struct {
	// counts are the numbers of objects by kind.
	counts map[string]int
	// missingParents are the parents that do not exist.
	missingParents map[gateway.Owner]bool
	// manifestsOnly reports whether no cluster was read. The cluster may contain the
	// parents.
	manifestsOnly bool
}

// findUnattached returns the objects whose parents do not exist. It follows the
// parent of a ListenerSet to its Gateway.
func findUnattached(source *state.Source) unattached {
	found := unattached{counts: map[string]int{}, missingParents: map[gateway.Owner]bool{}, manifestsOnly: !source.Live}
	exists, gatewayOf := parents(source.Objects)
	for _, object := range source.Objects {
		kind, refs := parentsInSpec(object)
		for i, parent := range refs {
			refs[i] = cmp.Or(gatewayOf[parent], parent)
		}
		if len(refs) == 0 || slices.ContainsFunc(refs, func(parent gateway.Owner) bool { return exists[parent] }) {
			continue
		}
		found.counts[kind]++
		for _, parent := range refs {
			found.missingParents[parent] = true
		}
	}
	return found
}

// parents returns the Gateways and ListenerSets that exist, and the parent Gateway of
// each ListenerSet.
func parents(objects []client.Object) (exists map[gateway.Owner]bool, gatewayOf map[gateway.Owner]gateway.Owner) {
	exists, gatewayOf = map[gateway.Owner]bool{}, map[gateway.Owner]gateway.Owner{}
	for _, object := range objects {
		switch o := object.(type) {
		case *gatewayv1.Gateway:
			exists[state.GatewayKey(o.Namespace, o.Name)] = true
		case *gatewayv1.ListenerSet:
			set := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(o)}
			exists[set] = true
			if parent, ok := state.ParentGateway(o); ok {
				gatewayOf[set] = parent
			}
		}
	}
	return exists, gatewayOf
}

// parentsInSpec returns the kind of a ListenerSet or a route and the parents in its
// spec. The kind is determined by the type, because the API server omits it in
// lists.
func parentsInSpec(object client.Object) (string, []gateway.Owner) {
	switch o := object.(type) {
	case *gatewayv1.ListenerSet:
		if parent, ok := state.ParentGateway(o); ok {
			return gateway.KindListenerSet, []gateway.Owner{parent}
		}
	case *gatewayv1.HTTPRoute:
		return gateway.KindHTTPRoute, state.RouteParents(o, noController)
	case *gatewayv1.GRPCRoute:
		return gateway.KindGRPCRoute, state.RouteParents(o, noController)
	}
	return "", nil
}

// noController is the name of no controller: no status entry has it, so that
// [state.RouteParents] returns only the parents in the spec.
const noController = ""

// Unattached returns a remark about the objects that get no status because their
// parents do not exist, or "". It returns "" for a cluster with Gateways of this
// controller, because the objects may belong to other controllers.
func (p *Plan) Unattached(style Style) string {
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
	verb := "refer"
	if total == 1 {
		verb = "refers"
	}
	problem, advice := "do not exist", ""
	if p.unattached.manifestsOnly {
		problem, advice = "are not in the manifests", " Add --context to combine the manifests with a cluster."
	}
	var names []string
	for parent := range p.unattached.missingParents {
		names = append(names, parent.String())
	}
	slices.Sort(names)
	return fmt.Sprintf("%s %s to parents that %s (%s).%s", strings.Join(counts, " and "), verb, problem, style.abbreviate(names), advice)
}

func plural(kind string, n int) string {
	if n == 1 {
		return kind
	}
	return kind + "s"
}

// abbreviate joins at most three names, and the number of the others. In a wide style it
// joins all names.
func (s Style) abbreviate(names []string) string {
	const limit = 3
	if s.Wide || len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// noGatewayMessage returns the message that the controller serves no Gateway, with
// the reason for each Gateway that exists.
func (p *Plan) noGatewayMessage(style Style) string {
	message := "No Gateway uses this controller."
	var reasons []string
	for name, reason := range p.unserved {
		reasons = append(reasons, fmt.Sprintf("Gateway %s: %s", name, reason))
	}
	if len(reasons) > 0 {
		slices.Sort(reasons)
		message += fmt.Sprintf(" %s.", style.abbreviate(reasons))
	}
	return message
}
