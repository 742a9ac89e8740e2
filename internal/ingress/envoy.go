package ingress

import (
	"fmt"

	"k8s.io/utils/ptr"

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
// about which it decides. A closed hostname has no rule either: Envoy returns 403 for it
// on both listeners. A request for d.admin.example.com needs a token although the
// table does not serve it; Envoy then returns 404. However many hostnames the tenants
// add, the rules only follow what demands protection, and package gateway closes the youngest
// demands above [routing.MaxAccessRules].
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

// envoyRules returns the rules from the narrowest to the widest hostname.
func envoyRules(t *routing.Table) []provider.IngressRule {
	var hostnames []string
	if len(t.Access) > 0 { // few Gateways
		hostnames = t.Hostnames()
	}
	needed := t.Access.Rules(hostnames)
	rules := make([]provider.IngressRule, len(needed))
	for i, rule := range needed {
		rules[i] = envoyRule(rule.Hostname, rule.Requirement)
	}
	return rules
}

const (
	refusedOpen      = 404
	refusedProtected = 403
)

// EnvoyRefusal returns the status with which Envoy refuses a request because its host is
// not in canonical form, or 0. A closed hostname is refused in each form. If only admin.example.com is protected, a request for
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
		case rule.Service == serviceProtected, t.Access.Of(r.Hostname()).IsClosed():
			return refusedProtected
		case !t.Access.Of(r.Hostname()).IsOpen():
			return refusedOpen
		default:
			return 0
		}
	}
	return 0
}

func envoyRule(hostname string, access *routing.Requirement) provider.IngressRule {
	if access == nil {
		return provider.IngressRule{Hostname: hostname, Service: serviceOpen}
	}
	return provider.IngressRule{
		Hostname: hostname, Service: serviceProtected, OriginRequest: provider.OriginRequest{Access: RenderAccess(access)},
	}
}
