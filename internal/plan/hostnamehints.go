package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// hostnamesOf returns the hostnames of the listeners on the Gateway or ListenerSet.
func (g *Gateway) hostnamesOf(owner gateway.Owner) []string {
	if g.hostnames == nil {
		g.hostnames = map[gateway.Owner][]string{}
		for _, l := range g.resultListeners() {
			g.hostnames[l.Owner] = append(g.hostnames[l.Owner], l.Hostname())
		}
	}
	return g.hostnames[owner]
}

// hostnameHints returns a suggestion for each of a route's hostnames that resembles a
// hostname of the parent, if the parent rejects the route because of its hostnames.
func (g *Gateway) hostnameHints(route *gateway.Route, parent *gateway.Parent) []string {
	if parent.Rejected == nil || parent.Rejected.Reason != conditions.ReasonNoMatchingListenerHostname {
		return nil
	}
	var all []string
	for _, hostname := range route.Hostnames {
		if closest := suggest.Closest(string(hostname), otherHostnames(string(hostname), g.hostnamesOf(parent.Owner))); closest != "" {
			all = append(all, fmt.Sprintf("Did you mean %s instead of %s?", closest, hostname))
		}
	}
	return all
}

// unservedHostname is a hostname in an accepted route that no listener of its parents has.
// The status of the route does not report it.
type unservedHostname struct {
	route    Owner
	hostname string
	// similar is a similar hostname that the route does not have, or empty.
	similar string
}

// String returns the warning about the hostname.
func (u unservedHostname) String() string {
	return fmt.Sprintf("%s: %s", u.route, suggest.DidYouMean(fmt.Sprintf("no listener of the route's parents has the hostname %q", u.hostname), u.similar))
}

// findUnservedHostnames sets the unserved hostnames of the Gateways' routes. It omits routes
// that also have parents which the controller does not serve.
func (p *Plan) findUnservedHostnames() {
	parents, served := map[Owner]int{}, map[Owner]map[string]bool{}
	candidates := map[Owner][]string{}
	for i := range p.Gateways {
		g := &p.Gateways[i]
		for _, route := range g.result.Routes {
			id := ownerOf(route)
			if served[id] == nil {
				served[id] = map[string]bool{}
			}
			for j := range route.Parents {
				hostnames := g.hostnamesOf(route.Parents[j].Owner)
				candidates[id] = append(candidates[id], hostnames...)
				addIntersecting(served[id], route, hostnames)
			}
			parents[id] += len(route.Parents)
		}
	}
	for i := range p.Gateways {
		g := &p.Gateways[i]
		for _, route := range g.result.Routes {
			if id := ownerOf(route); route.ParentRefs() == parents[id] && slices.ContainsFunc(route.Parents, isAccepted) {
				g.unservedHostnames = append(g.unservedHostnames, newUnservedHostnames(route, served[id], candidates[id])...)
			}
		}
	}
}

func isAccepted(parent gateway.Parent) bool { return parent.Rejected == nil }

// addIntersecting adds the route's hostnames that intersect with a hostname of a listener.
func addIntersecting(all map[string]bool, route *gateway.Route, listeners []string) {
	for _, hostname := range route.Hostnames {
		for _, listener := range listeners {
			if _, ok := routing.Intersect(listener, string(hostname)); ok {
				all[string(hostname)] = true
			}
		}
	}
}

// newUnservedHostnames returns the route's hostnames that are not served. candidates are the
// hostnames of its parents.
func newUnservedHostnames(route *gateway.Route, served map[string]bool, candidates []string) []unservedHostname {
	own := map[string]bool{}
	for _, hostname := range route.Hostnames {
		own[string(hostname)] = true
	}
	var all []unservedHostname
	for _, hostname := range slices.Sorted(maps.Keys(own)) {
		if served[hostname] {
			continue
		}
		others := slices.DeleteFunc(otherHostnames(hostname, candidates), func(other string) bool { return own[other] })
		all = append(all, unservedHostname{ownerOf(route), hostname, suggest.Closest(hostname, others)})
	}
	return all
}
