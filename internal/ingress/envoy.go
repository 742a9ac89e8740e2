package ingress

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The services of the rules that lead to the Envoy beside a connector.
var (
	serviceOpen      = fmt.Sprintf("http://127.0.0.1:%d", envoy.PortOpen)
	serviceProtected = fmt.Sprintf("http://127.0.0.1:%d", envoy.PortProtected)
)

// EnvoyConfiguration returns the tunnel configuration for a table that Envoy serves. It
// returns nil for a nil table: the tunnel then keeps its last configuration.
//
// Only the connector can check the tokens of Access, so each hostname of the settings that
// decides about the Access of a hostname in the table has a rule, unless a wider rule has
// the same Access. All other requests go to the last rule. The rules therefore follow the
// settings of the platform team: there are at most [MaxAccessRules], however many hostnames
// the tenants have. A hostname of the settings can be wider than all hostnames of the table.
// Requests for a hostname that the table does not have can then need a token, and Envoy
// answers them with 404.
//
// The connector compares hostnames case-sensitively, so a host in another form can miss
// its rule: Envoy answers it with 404 on the open listener, and with 403 on the protected
// one.
func EnvoyConfiguration(t *routing.Table) *provider.Configuration {
	if t == nil {
		return nil
	}
	return &provider.Configuration{
		Ingress: envoyRules(t),
		OriginRequest: provider.OriginRequest{
			ConnectTimeout: ptr.To[int64](5), KeepAliveConnections: ptr.To[int64](1000), KeepAliveTimeout: ptr.To[int64](60),
		},
	}
}

// MaxAccessRules is the maximum number of rules, including the last one: the class and the
// Gateway each have at most 256 entries in spec.listenerConfigurations, which the
// CustomResourceDefinition ensures.
const MaxAccessRules = 2*256 + 1

// envoyRules returns the rules from the narrowest to the widest hostname.
func envoyRules(t *routing.Table) []provider.IngressRule {
	access := map[string]*v1alpha1.Access{"": nil} // of each hostname with a rule
	decisive := decisiveHostnames(t)
	if len(decisive) > 0 && decisive[len(decisive)-1] == "" {
		access[""] = t.Access[""]
	}
	rules := []provider.IngressRule{envoyRule("", access[""])}
	for _, hostname := range slices.Backward(decisive) {
		wider, _ := routing.MostSpecific(access, hostname)
		if !t.Access[hostname].Equal(access[wider]) {
			access[hostname] = t.Access[hostname]
			rules = append(rules, envoyRule(hostname, t.Access[hostname]))
		}
	}
	slices.Reverse(rules)
	return rules
}

// The statuses with which the open and the protected listener refuse the other form of a host.
const (
	refusedOpen      = 404
	refusedProtected = 403
)

// EnvoyRefusal returns the status with which Envoy refuses a request because of the form of its
// host, or 0: it serves hostnames with Access only to requests that take a rule with Access, and
// only in their canonical form.
func EnvoyRefusal(t *routing.Table, r routing.Request) int {
	if t == nil || r.Host == r.Hostname() {
		return 0 // most requests
	}
	for _, rule := range envoyRules(t) {
		switch {
		case !routing.Covers(rule.Hostname, r.Host):
		case rule.Service == serviceProtected:
			return refusedProtected
		case t.Access.Of(r.Hostname()) != nil:
			return refusedOpen
		default:
			return 0
		}
	}
	return 0
}

// decisiveHostnames returns the hostnames of the settings that decide about the Access of
// the hostnames of the table, in the order of [routing.CompareGroups].
func decisiveHostnames(t *routing.Table) []string {
	if len(t.Access) == 0 {
		return nil // most Gateways
	}
	decisive := map[string]struct{}{}
	for _, host := range t.Hosts() {
		if hostname, ok := routing.MostSpecific(t.Access, host.Hostname); ok {
			decisive[hostname] = struct{}{}
		}
	}
	return slices.SortedFunc(maps.Keys(decisive), routing.CompareGroups)
}

func envoyRule(hostname string, access *v1alpha1.Access) provider.IngressRule {
	if access == nil {
		return provider.IngressRule{Hostname: hostname, Service: serviceOpen}
	}
	return provider.IngressRule{
		Hostname: hostname, Service: serviceProtected, OriginRequest: provider.OriginRequest{Access: RenderAccess(access)},
	}
}
