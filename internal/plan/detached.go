package plan

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// DetachedRoute is a route that would serve the host of a request if all of its parents
// existed.
type DetachedRoute struct {
	Route Owner `json:"route"`
	// Hostnames are the hostnames of the route; empty if it has the hostnames of its
	// parents.
	Hostnames []string `json:"hostnames"`
	// Problems describe the parents that do not exist.
	Problems []string `json:"problems"`
}

// detachedRoute is a route with a missing parent.
type detachedRoute struct {
	route     Owner
	hostnames []string
	problems  []string
}

// newDetachedRoute returns the detached route for the problems of its parents, and none
// for an object of another kind.
func newDetachedRoute(owner Owner, object client.Object, problems []string) []detachedRoute {
	var hostnames []gatewayv1.Hostname
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		hostnames = o.Spec.Hostnames
	case *gatewayv1.GRPCRoute:
		hostnames = o.Spec.Hostnames
	default:
		return nil
	}
	route := detachedRoute{route: owner, hostnames: make([]string, len(hostnames)), problems: slices.Clone(problems)}
	for i, hostname := range hostnames {
		route.hostnames[i] = string(hostname)
	}
	return []detachedRoute{route}
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
		covers := slices.ContainsFunc(d.hostnames, func(hostname string) bool { return routing.Covers(hostname, host) })
		if covers && !answering[d.route] || len(d.hostnames) == 0 && len(answering) == 0 {
			found = append(found, DetachedRoute{d.route, d.hostnames, d.problems})
		}
	}
	return found
}
