package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// xListenerSet is the kind that ListenerSet replaced.
const xListenerSet = "XListenerSet"

// currentListenerSet names the kind that the controller reads.
const currentListenerSet = "kind ListenerSet of gateway.networking.k8s.io/v1"

// unsupportedMistakes returns the mistakes in objects of Gateway API kinds that the controller
// does not read, but that refer to objects that it serves.
func (p *parents) unsupportedMistakes(source *state.Source) []Mistake {
	used := p.usedServices(source.Objects)
	var mistakes []Mistake
	for i := range source.Unsupported {
		u := &source.Unsupported[i]
		if served, gateways := p.servedObjects(u, used); len(served) > 0 {
			mistakes = append(mistakes, Mistake{Object: Owner{u.Kind, u.Namespace, u.Name}, Message: describeUnsupported(u, served), gateways: gateways})
		}
	}
	return mistakes
}

// describeUnsupported describes the effect of an object that refers to the served objects.
func describeUnsupported(u *state.Unsupported, served []string) string {
	notRead := fmt.Sprintf("The controller does not read %s, so ", pluralKind(u.Kind))
	objects := strings.Join(served, ", ")
	switch {
	case u.Kind == xListenerSet:
		return suggest.DidYouMean(notRead+"their listeners are not served on "+objects, currentListenerSet)
	case strings.HasSuffix(u.Kind, "Route"):
		return notRead + "they are not served on " + objects + ". Tunnels serve only HTTPRoutes and GRPCRoutes."
	default:
		return notRead + "they have no effect on " + objects + "."
	}
}

// pluralKind returns the plural of a kind.
func pluralKind(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return kind + "s"
}

// servedObjects returns the objects to which u refers and that the controller serves, and
// their Gateways. used are the Services to which served routes refer.
func (p *parents) servedObjects(u *state.Unsupported, used map[types.NamespacedName][]gateway.Owner) (served []string, gateways []gateway.Owner) {
	for _, ref := range append(u.Parents[:len(u.Parents):len(u.Parents)], u.Targets...) {
		owner, ok := gateway.OwnerOf(ref, u.Namespace)
		if g := p.gatewayFor(owner); ok && p.managed[g] {
			served, gateways = append(served, owner.String()), append(gateways, g)
		}
	}
	for _, ref := range u.Targets {
		name := types.NamespacedName{Namespace: u.Namespace, Name: string(ref.Name)}
		if ptr.Deref(ref.Group, "") == "" && ptr.Deref(ref.Kind, "") == "Service" && used[name] != nil {
			served, gateways = append(served, "Service "+name.String()), append(gateways, used[name]...)
		}
	}
	return served, gateways
}

// gatewayFor returns the Gateway that the owner is, or to which the ListenerSet refers.
func (p *parents) gatewayFor(owner gateway.Owner) gateway.Owner {
	if g, ok := p.gatewayOf[owner]; ok {
		return g
	}
	return owner
}

// usedServices returns the Services to which routes on this controller's Gateways refer,
// with these Gateways.
func (p *parents) usedServices(objects []client.Object) map[types.NamespacedName][]gateway.Owner {
	used := map[types.NamespacedName][]gateway.Owner{}
	for _, object := range objects {
		if gateways := p.gatewaysOfRoute(object); len(gateways) > 0 {
			for _, name := range state.BackendServices(object) {
				used[name] = append(used[name], gateways...)
			}
		}
	}
	return used
}

// gatewaysOfRoute returns this controller's Gateways to which an object refers if it is a
// route.
func (p *parents) gatewaysOfRoute(object client.Object) []gateway.Owner {
	spec, _, ok := gateway.CommonRoute(object)
	if !ok {
		return nil
	}
	var gateways []gateway.Owner
	for _, ref := range spec.ParentRefs {
		owner, ok := gateway.OwnerOf(ref, object.GetNamespace())
		if g := p.gatewayFor(owner); ok && p.managed[g] {
			gateways = append(gateways, g)
		}
	}
	return gateways
}

// experimentalParentProblem describes the mistake in a route's parentRef to an XListenerSet,
// or returns "" if the XListenerSet belongs to another implementation.
func (p *parents) experimentalParentProblem(field, namespace string, ref gatewayv1.ParentReference) string {
	if ptr.Deref(ref.Group, "") != manifest.ExperimentalGroup || ptr.Deref(ref.Kind, "") != xListenerSet {
		return ""
	}
	name := types.NamespacedName{Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))), Name: string(ref.Name)}
	if g, ok := p.experimental[name]; ok && p.exists[g] && !p.managed[g] {
		return ""
	}
	return suggest.DidYouMean(fmt.Sprintf("%s refers to XListenerSet %s, and the controller does not read XListenerSets", field, name), currentListenerSet)
}
