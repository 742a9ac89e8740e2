package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// expectedToFail runs a check that reproduces a known defect. The test fails when the
// check reports nothing, because the mark is then out of date.
func expectedToFail(t *testing.T, reason string, check func() string) {
	t.Helper()
	if got := check(); got == "" {
		t.Errorf("the check succeeds, but is expected to fail: %s", reason)
	}
}

// accessCluster returns manifests with a Gateway that has the listeners, one route for
// all of them, and the specs of the TunnelConfigurations of the class and of the Gateway.
func accessCluster(listeners, class, own string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: platform, name: defaults}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: defaults, namespace: platform}
spec: {%s}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: own, namespace: infra}
spec: {%s}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: own}}
  listeners: [%s]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: infra}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
`, class, own, listeners)
}

// unprotected returns the rules for the hostname that lead to a backend and require no
// token, or a remark when no rule for the hostname leads to a backend.
func unprotected(p *plan.Plan, hostname string) string {
	var found []string
	backends := 0
	for _, rule := range p.Gateways[0].Config.Ingress {
		if rule.Hostname != hostname || !strings.HasPrefix(rule.Service, "http://") {
			continue
		}
		backends++
		if a := rule.OriginRequest.Access; a == nil || !a.Required || a.TeamName != "example" || !slices.Equal(a.AUDTag, []string{"tag"}) {
			found = append(found, fmt.Sprintf("%+v", rule))
		}
	}
	if backends == 0 {
		return "no rule for " + hostname + " leads to a backend"
	}
	return strings.Join(found, "\n")
}

const (
	required  = `access: {required: true, teamName: example, audTags: [tag]}`
	exempt    = `access: {required: false}`
	adminHTTP = `{name: http, port: 80, protocol: HTTP, hostname: admin.example.com}`
	adminAlt  = `{name: alt, port: 8443, protocol: HTTPS, hostname: admin.example.com}`
	wildcard  = `{name: wildcard, port: 443, protocol: HTTPS, hostname: "*.example.com"}`
)

// A tunnel does not distinguish ports, so the port of an entry does not limit Access.
func TestAccessAppliesToEveryPort(t *testing.T) {
	for name, listener := range map[string]string{"another HTTPS port": adminAlt, "an HTTP port": adminHTTP} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, accessCluster(listener, `listenerConfigurations: [{protocolPort: "HTTPS:443", `+required+`}]`, ""))
			expectedToFail(t, "an entry applies to listeners of its port only", func() string { return unprotected(p, "admin.example.com") })
		})
	}
}

// An entry protects its hostname below the wildcard of a listener.
func TestAccessProtectsAHostnameBelowAWildcard(t *testing.T) {
	p := planOf(t, accessCluster(wildcard, "", `listenerConfigurations: [{protocolPort: "HTTPS:443", hostname: admin.example.com, `+required+`}]`))
	expectedToFail(t, "an entry applies to listeners with exactly its hostname only", func() string { return unprotected(p, "admin.example.com") })
}

// A Gateway cannot remove Access that its class demands, in any mergingMode.
func TestAGatewayCannotRemoveAccessOfItsClass(t *testing.T) {
	p := planOf(t, accessCluster(adminAlt,
		`mergingMode: PreferGateway, listenerConfigurations: [{protocolPort: "HTTPS:8443", `+required+`}]`,
		`listenerConfigurations: [{protocolPort: "HTTPS:8443", `+exempt+`}]`))
	expectedToFail(t, "the preferred level decides", func() string { return unprotected(p, "admin.example.com") })
}

// An entry whose hostname no listener covers is reported, and makes plan --strict fail.
func TestAnEntryThatCoversNoHostnameIsReported(t *testing.T) {
	p := planOf(t, accessCluster(adminAlt, "", `listenerConfigurations: [{protocolPort: "HTTPS:8443", hostname: admin.example.org, `+required+`}]`))
	expectedToFail(t, "the plan reports nothing", func() string {
		if p.Healthy() {
			return "Healthy = true, want false"
		}
		return ""
	})
}
