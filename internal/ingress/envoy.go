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

var (
	serviceOpen      = fmt.Sprintf("http://127.0.0.1:%d", envoy.PortOpen)
	serviceProtected = fmt.Sprintf("http://127.0.0.1:%d", envoy.PortProtected)
)

// EnvoyConfiguration returns the tunnel configuration for a table that Envoy serves. It
// returns nil for a nil table: the tunnel then keeps its last configuration.
//
// Only the connector can check Access tokens, so protected hostnames need ingress rules.
// All other requests go to the last rule. For example, the table serves shop.example.com
// and a, b and c.admin.example.com, and spec.listenerConfigurations has
//
//	*.admin.example.com   access for the audience "ops"
//	a.admin.example.com   access for the audience "ops"
//	b.admin.example.com   no access required
//	*.test.example.com    access for the audience "qa"
//
// The configuration then has three rules, the narrowest first:
//
//	b.admin.example.com -> 127.0.0.1:10080 (open)
//	*.admin.example.com -> 127.0.0.1:10081 (protected), requires a token for "ops"
//	every hostname      -> 127.0.0.1:10080 (open)
//
// The entry for a.admin.example.com has no rule, because the wider rule requires the same
// token. The entry for *.test.example.com has none, because the table serves no hostname
// about which it decides. A request for d.admin.example.com needs a token although the
// table does not serve it; Envoy then returns 404. However many hostnames the tenants
// add, the rules only follow the platform team's settings, so there are at most
// [MaxAccessRules].
//
// The connector compares hostnames case-sensitively. A request for B.admin.example.com
// therefore takes the rule for *.admin.example.com and needs a token. Envoy refuses it,
// because the protected listener serves only the canonical form; see [EnvoyRefusal].
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

// MaxAccessRules is the most rules that there can be, including the last one: the
// CustomResourceDefinition limits spec.listenerConfigurations to 256 entries each for the
// GatewayClass and the Gateway.
const MaxAccessRules = 2*256 + 1

// envoyRules returns the rules from the narrowest to the widest hostname.
func envoyRules(t *routing.Table) []provider.IngressRule {
	access := map[string]*v1alpha1.Access{"": nil} // by the hostname of a rule
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

const (
	refusedOpen      = 404
	refusedProtected = 403
)

// EnvoyRefusal returns the status with which Envoy refuses a request because its host is
// not in canonical form, or 0. If only admin.example.com is protected, a request for
// ADMIN.example.com misses its rule, reaches the open listener and gets 404. If
// *.example.com is protected with another audience, the request takes that rule, reaches
// the protected listener and gets 403.
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

// decisiveHostnames returns the hostnames in the settings that decide about a hostname in
// the table, in the order of [routing.CompareGroups]. With the entries *.example.com and
// *.test.example.com, and a table with only shop.example.com, it returns *.example.com.
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
