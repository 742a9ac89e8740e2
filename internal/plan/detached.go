package plan

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

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
}

// newDetachedRoute returns the detached route for the problems with its parents, and
// none for an object of another kind.
func newDetachedRoute(owner Owner, object client.Object, problems []string) []DetachedRoute {
	var hostnames []gatewayv1.Hostname
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		hostnames = o.Spec.Hostnames
	case *gatewayv1.GRPCRoute:
		hostnames = o.Spec.Hostnames
	default:
		return nil
	}
	route := DetachedRoute{Route: owner, Hostnames: make([]string, len(hostnames)), Problems: slices.Clone(problems)}
	for i, hostname := range hostnames {
		route.Hostnames[i] = string(hostname)
	}
	return []DetachedRoute{route}
}

// detachedRoutes returns the routes with a missing parent that would serve the host. A
// route without hostnames could serve any host, so it is omitted if a route answers.
func (p *Plan) detachedRoutes(host string, traces []Trace) []DetachedRoute {
	answering := map[Owner]bool{}
	for _, t := range traces {
		if t.Answer != nil && t.Answer.Entry != nil {
			answering[t.Answer.Entry.Route] = true
		}
	}
	found := []DetachedRoute{}
	for _, d := range p.detached {
		covers := slices.ContainsFunc(d.Hostnames, func(hostname string) bool { return routing.Covers(hostname, host) })
		if covers && !answering[d.Route] || len(d.Hostnames) == 0 && len(answering) == 0 {
			found = append(found, d)
		}
	}
	return found
}
