package gateway_test

import (
	"slices"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// needsPermission reports whether the GatewayClass demands that namespace annotations
// permit hostnames.
func (o *oracle) needsPermission() bool {
	c := o.snapshot.ClassConfiguration
	return c != nil && c.Spec.Hostnames != nil && c.Spec.Hostnames.From != nil && *c.Spec.Hostnames.From == v1alpha1.HostnamesFromNamespaceAnnotation
}

// mayUse reports whether an entry in the annotation permits the hostname to the
// namespace.
func (o *oracle) mayUse(namespace, hostname string) bool {
	entries := strings.Fields(strings.ReplaceAll(o.snapshot.Namespaces[namespace].Annotations["tunnelgateway.dev/hostnames"], ",", " "))
	return slices.ContainsFunc(entries, func(entry string) bool {
		switch {
		case entry == "*":
			return true
		case hostname == "" || isUnsupportedHostname(entry) || entry != strings.ToLower(entry):
			return false
		default:
			return entry == hostname || covers(entry, hostname)
		}
	})
}

// isUnsupportedHostname reports whether no listener or route can use a hostname in the random
// clusters.
func isUnsupportedHostname(hostname string) bool { return slices.Contains(randomUnsupported, hostname) }

// ownerMayUse reports whether the owner of a listener may use the hostname.
func (o *oracle) ownerMayUse(c *claim, hostname string) bool {
	return !o.needsPermission() || c.owner.Kind == gateway.KindGateway || o.mayUse(c.owner.Namespace, hostname)
}

// routeMayUse reports whether a route may use the hostname on the listener.
func (o *oracle) routeMayUse(c *claim, route *specRoute, hostname string) bool {
	exempt := c.owner.Kind == gateway.KindGateway && route.Namespace == o.snapshot.Gateway.Namespace
	return !o.needsPermission() || exempt || o.mayUse(route.Namespace, hostname) && o.ownerMayUse(c, hostname)
}

// servedOn returns the route's hostnames that are supported, that intersect with the
// listener, and whose intersection the route may use.
func (o *oracle) servedOn(c *claim, route *specRoute) []string {
	return o.servedFor(c, route, c.hostname())
}

// servedFor does the same for a narrower hostname, which the listener answers for another one.
func (o *oracle) servedFor(c *claim, route *specRoute, hostname string) []string {
	return slices.DeleteFunc(slices.Clone(route.hostnames), func(written string) bool {
		served := written
		if hostMatches(written, hostname) {
			served = hostname
		}
		return isUnsupportedHostname(written) || !hostnamesIntersect(hostname, written) || !o.routeMayUse(c, route, served)
	})
}

// hasSupportedHostname reports whether the route can be served under a hostname.
func (o *oracle) hasSupportedHostname(route *specRoute) bool {
	return slices.ContainsFunc(route.hostnames, func(written string) bool { return !isUnsupportedHostname(written) })
}

// permits reports whether the listener allows the route, and the route may use a
// hostname on it.
func (o *oracle) permits(c *claim, route *specRoute) bool {
	return o.allowsRoutes(c, route) && len(o.servedOn(c, route)) > 0
}
