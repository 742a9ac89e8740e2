package plan

import (
	"slices"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// DetachedRoute is a route with a missing parent. In an Explanation, it would serve the
// request's host if all its parents existed.
type DetachedRoute struct {
	Route Owner `json:"route"`
	// Hostnames is empty if the route has its parents' hostnames.
	Hostnames []string `json:"hostnames"`
	// Problems describe the parents that do not exist.
	Problems []string `json:"problems"`

	// inherited are the hostnames of its parents, if all of them are known ListenerSets.
	inherited []string
}

// newDetachedRoute returns the detached route for the problems with its parents, and
// none for an object of another kind.
func newDetachedRoute(owner Owner, object client.Object, problems []string, sets listenerHostnames) []DetachedRoute {
	var hostnames []gatewayv1.Hostname
	var parents []gatewayv1.ParentReference
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		hostnames, parents = o.Spec.Hostnames, o.Spec.ParentRefs
	case *gatewayv1.GRPCRoute:
		hostnames, parents = o.Spec.Hostnames, o.Spec.ParentRefs
	default:
		return nil
	}
	route := DetachedRoute{Route: owner, Hostnames: make([]string, len(hostnames)), Problems: slices.Clone(problems)}
	route.inherited = sets.of(parents, owner.Namespace)
	for i, hostname := range hostnames {
		route.Hostnames[i] = string(hostname)
	}
	return []DetachedRoute{route}
}

// listenerHostnames are the hostnames of the listeners in each ListenerSet.
type listenerHostnames map[gateway.Owner][]string

func newListenerHostnames(objects []client.Object) listenerHostnames {
	all := listenerHostnames{}
	for _, object := range objects {
		if set, ok := object.(*gatewayv1.ListenerSet); ok {
			owner := gateway.Owner{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(set)}
			for i := range set.Spec.Listeners {
				all[owner] = append(all[owner], string(ptr.Deref(set.Spec.Listeners[i].Hostname, "")))
			}
		}
	}
	return all
}

// of returns the hostnames of all parents, or nothing if one of them is not a known
// ListenerSet.
func (h listenerHostnames) of(parents []gatewayv1.ParentReference, namespace string) []string {
	var all []string
	for _, ref := range parents {
		owner, _ := gateway.OwnerOf(ref, namespace)
		if h[owner] == nil {
			return nil
		}
		all = append(all, h[owner]...)
	}
	return all
}

// mayServe reports whether the route would serve the host. A route with unknown hostnames
// could serve any host.
func (d *DetachedRoute) mayServe(host string) bool {
	hostnames := d.Hostnames
	if len(hostnames) == 0 {
		hostnames = d.inherited
	}
	return len(hostnames) == 0 || slices.ContainsFunc(hostnames, func(hostname string) bool { return routing.Covers(hostname, host) })
}

// detachedRoutes returns the routes with a missing parent that would serve the host. A
// route without hostnames is omitted if a route answers.
func (p *Plan) detachedRoutes(host string, traces []Trace) []DetachedRoute {
	answering := map[Owner]bool{}
	for _, t := range traces {
		if t.Answer != nil && t.Answer.Entry != nil {
			answering[t.Answer.Entry.Route] = true
		}
	}
	found := []DetachedRoute{}
	for i := range p.detached {
		d := &p.detached[i]
		isAnswered := answering[d.Route] || len(d.Hostnames) == 0 && len(answering) > 0
		if d.mayServe(host) && !isAnswered {
			found = append(found, *d)
		}
	}
	return found
}
