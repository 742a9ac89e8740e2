package ingress

import (
	"fmt"
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
// Only the connector can check the tokens of Access, so a hostname has a rule of its own
// when it requires other access than the next wider hostname with a rule. All other
// requests go to the last rule. The connector compares hostnames case-sensitively, so a
// host in another form can miss its rule: Envoy answers it with 404 on the open listener,
// and with 403 on the protected one.
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
	hosts := t.Hosts()
	byHostname := map[string]*v1alpha1.Access{"": nil} // the access of each hostname with a rule
	if n := len(hosts); n > 0 && hosts[n-1].Hostname == "" {
		byHostname[""] = hosts[n-1].Access
	}
	rules := []provider.IngressRule{envoyRule("", byHostname[""])}
	for _, host := range slices.Backward(hosts) {
		wider, _ := routing.MostSpecific(byHostname, host.Hostname)
		if !host.Access.Equal(byHostname[wider]) {
			byHostname[host.Hostname] = host.Access
			rules = append(rules, envoyRule(host.Hostname, host.Access))
		}
	}
	slices.Reverse(rules)
	return rules
}

func envoyRule(hostname string, access *v1alpha1.Access) provider.IngressRule {
	if access == nil {
		return provider.IngressRule{Hostname: hostname, Service: serviceOpen}
	}
	return provider.IngressRule{
		Hostname: hostname, Service: serviceProtected, OriginRequest: provider.OriginRequest{Access: RenderAccess(access)},
	}
}
