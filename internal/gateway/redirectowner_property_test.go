package gateway_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A route that no listener for the hostname of a request admits answers only in the place
// of these listeners: as a redirect to https that belongs to the owner of the hostname or
// the Gateway, or as a route on another HTTPS listener with the same owner. A route in
// another namespace that is attached to the Gateway's HTTP listener never receives the
// request, although it matches.
func TestRedirectsOfTenantsReceiveNoRequestsForOthers(t *testing.T) {
	var total ownerCheck
	forEachFullCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		addLenders(s, seed)
		result := gateway.Build(s, envoyOptions())
		if result.Table == nil {
			return
		}
		c, hosts := ownerCheck{oracle: newEnvoyOracle(s)}, result.Table.Hosts()
		for _, request := range requestsFor(s, seed, true, 150) {
			answer, _ := result.Table.Answer(request)
			c.check(t, request, answer)
			c.check(t, request, answerOfHosts(hosts, request))
			c.countTempted(request)
		}
		total.redirected += c.redirected
		total.replaced += c.replaced
		total.tempted += c.tempted
	})
	if total.redirected == 0 || total.replaced == 0 || total.tempted == 0 {
		t.Errorf("the clusters do not have every case: %d answers of a redirect of a wider listener, %d of an HTTPS listener in its place, %d matching redirects of tenants",
			total.redirected, total.replaced, total.tempted)
	}
}

// addLenders gives the Gateway listeners for many hostnames that admit every route: one
// for HTTP and perhaps one for HTTPS. It attaches redirects to https from all namespaces
// to the Gateway, and from its own namespace to each set.
func addLenders(s *gateway.Snapshot, seed uint64) {
	d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 11)), snapshot: s, hostnames: randomHostnames, everything: true} //nolint:gosec // the test must be reproducible
	addListener := func(name gatewayv1.SectionName, port gatewayv1.PortNumber, protocol gatewayv1.ProtocolType, hostname string) {
		all := gatewayv1.NamespacesFromAll
		l := gatewayv1.Listener{
			Name: name, Port: port, Protocol: protocol,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}},
		}
		if hostname != "" {
			l.Hostname = new(gatewayv1.Hostname(hostname))
		}
		others := slices.DeleteFunc(s.Gateway.Spec.Listeners, func(other gatewayv1.Listener) bool { return repeats(l, other) })
		s.Gateway.Spec.Listeners = append(others, l)
	}
	addListener("lender", 80, gatewayv1.HTTPProtocolType, pick(d, "", "", "*.com", "*.example.com"))
	if d.chance(50) {
		addListener("secure", 443, gatewayv1.HTTPSProtocolType, pick(d, "", "*.com", "*.example.com"))
	}
	for i, namespace := range slices.Repeat(randomNamespaces, 3) {
		route := d.redirect(namespace, fmt.Sprintf("redirect-%d", i), gatewayv1.ParentReference{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))})
		if section := pick(d, "", "lender", "lender", "secure"); section != "" {
			route.Spec.ParentRefs[0].SectionName = new(gatewayv1.SectionName(section))
		}
	}
	for i, set := range s.ListenerSets {
		kind := gatewayv1.Kind(gateway.KindListenerSet)
		d.redirect(set.Namespace, fmt.Sprintf("own-redirect-%d", i), gatewayv1.ParentReference{Kind: &kind, Name: gatewayv1.ObjectName(set.Name)})
	}
}

// redirect adds a route that redirects to https.
func (d *randomizer) redirect(namespace, name string, parent gatewayv1.ParentReference) *gatewayv1.HTTPRoute {
	route := &gatewayv1.HTTPRoute{ObjectMeta: d.meta(namespace, name)}
	route.Spec.ParentRefs, route.Spec.Hostnames = []gatewayv1.ParentReference{parent}, d.routeHostnames()
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{{
		Filters: []gatewayv1.HTTPRouteFilter{{
			Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Scheme: new("https")},
		}},
		Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: new(gatewayv1.PathMatchPathPrefix), Value: new(pick(d, "/", "/foo"))}}},
	}}
	d.snapshot.HTTPRoutes = append(d.snapshot.HTTPRoutes, route)
	return route
}

// ownerCheck checks the answers to the requests to one cluster.
type ownerCheck struct {
	*oracle
	// redirected and replaced count the answers from a wider listener's redirects, and
	// from HTTPS listeners in the place of a redirect. tempted counts the requests that a
	// tenant's redirect would answer if its namespace did not matter.
	redirected, replaced, tempted int
}

// check reports an answer from a route that has nothing to do with the owner of the
// hostname.
func (c *ownerCheck) check(t *testing.T, r routing.Request, answer *routing.Entry) {
	t.Helper()
	if answer == nil {
		return
	}
	group, owner := c.ownerOf(r.Host)
	route, listeners := c.admitting(answer)
	isHTTP, isRedirect := r.Scheme == routing.SchemeHTTP, isSpecRedirectToHTTPS(route.rules[answer.Source.Rule])
	switch {
	case slices.ContainsFunc(listeners, func(l *claim) bool { return l.owner == owner && l.hostname() == group }):
	case isHTTP && isRedirect && slices.ContainsFunc(listeners, func(l *claim) bool { return c.lends(l, route, group, owner) }):
		c.redirected++
	case !isHTTP && !isRedirect && slices.ContainsFunc(listeners, func(l *claim) bool { return isSecure(l) && isWider(l, group, owner) }):
		c.replaced++
	default:
		t.Errorf("%s: the hostname %q belongs to %s, and %s answers, which no listener of this owner admits", r, group, owner, answer.Source.Describe())
	}
}

// lends reports whether one of the route's redirects may answer for the owner's hostname.
func (c *ownerCheck) lends(l *claim, route *specRoute, group string, owner gateway.Owner) bool {
	return isInsecure(l) && l.owner.Namespace == route.Namespace && isWider(l, group, owner, c.gatewayOwner())
}

// isWider reports whether a listener belongs to one of the owners and covers the hostname.
func isWider(l *claim, group string, owners ...gateway.Owner) bool {
	return slices.Contains(owners, l.owner) && hostMatches(l.hostname(), group)
}

// ownerOf returns the most specific claimed hostname for a host, and its owner.
func (c *ownerCheck) ownerOf(host string) (group string, owner gateway.Owner) {
	group, _ = c.groupOf(host)
	for _, l := range c.claims {
		if l.claims && l.hostname() == group {
			owner = l.owner
		}
	}
	return group, owner
}

// admitting returns an entry's route, and the listeners that admit it.
func (c *ownerCheck) admitting(e *routing.Entry) (route *specRoute, listeners []*claim) {
	i := slices.IndexFunc(c.routes, func(r *specRoute) bool {
		return r.kind == e.Source.Route.Kind && r.Namespace == e.Source.Route.Namespace && r.Name == e.Source.Route.Name
	})
	for _, l := range c.claims {
		if slices.Contains(c.attached[l], c.routes[i]) {
			listeners = append(listeners, l)
		}
	}
	return c.routes[i], listeners
}

// countTempted counts an http request for a hostname with HTTPS listeners alone if it
// matches a tenant's redirect on a wider HTTP listener of the Gateway.
func (c *ownerCheck) countTempted(r routing.Request) {
	group, _ := c.ownerOf(r.Host)
	if r.Scheme != routing.SchemeHTTP || len(c.served(group, isSecure)) == 0 || len(c.served(group, isInsecure)) > 0 {
		return
	}
	lenders := c.wider(group, c.gatewayOwner(), isInsecure)
	if slices.ContainsFunc(c.through(lenders, group, r), func(m *candidate) bool { return c.isToHTTPS(m) && m.route.Namespace != c.gatewayOwner().Namespace }) {
		c.tempted++
	}
}
