package gateway

import (
	"fmt"
	"slices"
	"strings"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// ClaimedHostnames are the hostnames that a route names, but whose requests belong to
// listeners to which the route is not attached.
type ClaimedHostnames struct {
	Route  *Route
	claims []hostnameClaim
}

// hostnameClaim is a route hostname and the listener that receives its requests.
type hostnameClaim struct {
	hostname string
	claimant *Listener
}

// Message describes the hostnames and names the listeners, for the Gateway owner.
func (c *ClaimedHostnames) Message() string {
	return c.describe(func(l *Listener) string { return fmt.Sprintf("listener %q of %s", l.Spec.Name, l.Owner) })
}

// RouteMessage describes the hostnames for the route owner. It does not name objects of
// other tenants.
func (c *ClaimedHostnames) RouteMessage() string {
	return c.describe(func(l *Listener) string {
		switch isParent := func(p Parent) bool { return p.Owner == l.Owner }; {
		case l.Owner.Kind == KindGateway:
			return describeClaimant(l)
		case l.Owner.Namespace == c.Route.Namespace:
			return fmt.Sprintf("listener %q of %s", l.Spec.Name, l.Owner)
		case slices.ContainsFunc(c.Route.Parents, isParent):
			return "another listener of " + l.Owner.String()
		default:
			return describeClaimant(l)
		}
	})
}

// describe groups the hostnames by how their claimants are described.
func (c *ClaimedHostnames) describe(describeListener func(*Listener) string) string {
	var listeners []string
	hostnames := map[string][]string{}
	for _, claim := range c.claims {
		listener := describeListener(claim.claimant)
		if hostnames[listener] == nil {
			listeners = append(listeners, listener)
		}
		hostnames[listener] = append(hostnames[listener], claim.hostname)
	}
	parts := make([]string, len(listeners))
	for i, listener := range listeners {
		parts[i] = fmt.Sprintf("%s to %s", describeHostnameList(hostnames[listener], message.MaxSize/2), listener)
	}
	return fmt.Sprintf("Requests for spec.hostnames go to other listeners: %s. Attach the route to the listener with the hostname, or remove the hostname.",
		strings.Join(parts, "; "))
}

// claimedHostnames returns the claimed hostnames of the accepted routes whose parents all
// belong to this Gateway, the oldest route first.
func claimedHostnames(routes []*Route, divided shares, groups map[string]*group) []ClaimedHostnames {
	var all []ClaimedHostnames
	for _, route := range routes {
		if route.hasOtherParent() || divided.of(route).isRefused() || !slices.ContainsFunc(route.Parents, func(p Parent) bool { return len(p.Listeners) > 0 }) {
			continue // another Gateway may serve the hostname, or a condition reports it
		}
		var claims []hostnameClaim
		for i, hostname := range route.Hostnames {
			if slices.Contains(route.Hostnames[:i], hostname) {
				continue
			}
			if claimant := route.claimantOf(string(hostname), groups); claimant != nil {
				claims = append(claims, hostnameClaim{string(hostname), claimant})
			}
		}
		if len(claims) > 0 {
			all = append(all, ClaimedHostnames{route, claims})
		}
	}
	return all
}

// hasOtherParent reports whether a parentRef names a Gateway or ListenerSet that does not
// belong to this Gateway. Its listeners are not known here.
func (r *Route) hasOtherParent() bool {
	return slices.ContainsFunc(r.parentRefs, func(ref gatewayv1.ParentReference) bool {
		owner, ok := OwnerOf(ref, r.Namespace)
		return ok && !slices.ContainsFunc(r.Parents, func(p Parent) bool { return p.Owner == owner })
	})
}

// claimantOf returns the listener that receives the requests for a route hostname, or
// nil. It returns nil when one of the route's listeners receives some of them, and when a
// condition reports why the route is not served under the hostname.
func (r *Route) claimantOf(hostname string, groups map[string]*group) *Listener {
	for i := range r.Parents {
		for _, l := range r.Parents[i].Listeners {
			if r.receives(l, hostname, groups) {
				return nil
			}
		}
	}
	owner, found := routing.MostSpecific(groups, hostname)
	if !found || slices.Contains(r.unsupported, hostname) || slices.ContainsFunc(r.Parents, func(p Parent) bool { return slices.Contains(p.notPermitted, hostname) }) {
		return nil
	}
	return groups[owner].first
}

// receives reports whether the listener, which admits the route, claims requests for the
// hostname. Most listeners have the hostname itself.
func (r *Route) receives(l *Listener, hostname string, groups map[string]*group) bool {
	if !l.claims {
		return false
	}
	if l.Hostname() == hostname {
		return true
	}
	served, ok := routing.Intersect(l.Hostname(), hostname)
	if !ok {
		return false
	}
	owner, _ := routing.MostSpecific(groups, served)
	return owner == l.Hostname()
}

// claimWarnings returns a warning for each route with claimed hostnames.
func (r *Result) claimWarnings() []HostnameWarning {
	warnings := make([]HostnameWarning, len(r.ClaimedHostnames))
	for i := range r.ClaimedHostnames {
		c := &r.ClaimedHostnames[i]
		warnings[i] = HostnameWarning{Object: Owner{c.Route.Kind, c.Route.NamespacedName}, Reason: conditions.EventHostnameClaimed, Message: c.RouteMessage()}
	}
	return warnings
}
