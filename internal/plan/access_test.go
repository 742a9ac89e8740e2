package plan_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// accessCluster returns manifests with a Gateway that has the listeners, one route for
// all listeners, and the TunnelConfigurations of the GatewayClass and the Gateway.
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

// wantProtected checks that every rule for the hostname that leads to a backend requires
// the token.
func wantProtected(t *testing.T, p *plan.Plan, hostname string) {
	t.Helper()
	if found := unprotected(p, hostname); found != "" {
		t.Errorf("the hostname is not protected: %s", found)
	}
}

const (
	required  = `access: {required: true, teamName: example, audTags: [tag]}`
	exempt    = `access: {required: false}`
	adminHTTP = `{name: http, port: 80, protocol: HTTP, hostname: admin.example.com}`
	adminAlt  = `{name: alt, port: 8443, protocol: HTTPS, hostname: admin.example.com}`
	wildcard  = `{name: wildcard, port: 443, protocol: HTTPS, hostname: "*.example.com"}`
)

// A tunnel does not distinguish ports, so an entry's port does not limit Access.
func TestAccessAppliesToEveryPort(t *testing.T) {
	for name, listener := range map[string]string{"another HTTPS port": adminAlt, "an HTTP port": adminHTTP} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, accessCluster(listener, `listenerConfigurations: [{protocolPort: "HTTPS:443", `+required+`}]`, ""))
			wantProtected(t, p, "admin.example.com")
		})
	}
}

// An entry protects its hostname below a listener's wildcard.
func TestAccessProtectsAHostnameBelowAWildcard(t *testing.T) {
	p := planOf(t, accessCluster(wildcard, "", `listenerConfigurations: [{protocolPort: "HTTPS:443", hostname: admin.example.com, `+required+`}]`))
	wantProtected(t, p, "admin.example.com")
}

// A Gateway cannot remove the Access settings that its GatewayClass demands, in any
// mergingMode.
func TestAGatewayCannotRemoveAccessOfItsClass(t *testing.T) {
	p := planOf(t, accessCluster(adminAlt,
		`mergingMode: PreferGateway, listenerConfigurations: [{protocolPort: "HTTPS:8443", `+required+`}]`,
		`listenerConfigurations: [{protocolPort: "HTTPS:8443", `+exempt+`}]`))
	wantProtected(t, p, "admin.example.com")
}

// An entry whose hostname no listener covers is reported, and makes plan --strict fail.
func TestAnEntryThatCoversNoHostnameIsReported(t *testing.T) {
	p := planOf(t, accessCluster(adminAlt, "", `listenerConfigurations: [{protocolPort: "HTTPS:8443", hostname: admin.example.org, `+required+`}]`))
	if p.Healthy() {
		t.Error("Healthy = true, want false")
	}
	want := "Entries of listenerConfigurations have no effect, because no listener of the Gateway matches their hostnames: admin.example.org (of the Gateway). Correct the hostnames, add listeners, or remove the entries."
	if text := printed(t, p); !strings.Contains(text, want) {
		t.Errorf("the plan does not contain %q:\n%s", want, text)
	}
}

// A protected hostname below an unprotected wildcard makes plan --strict fail, because
// cloudflared compares hostnames case-sensitively. Protecting the wildcard closes the
// gap.
func TestAGapBelowAnUnprotectedWildcardIsReported(t *testing.T) {
	const admin = `{protocolPort: "*", hostname: admin.example.com, ` + required + `}`
	p := planOf(t, accessCluster(wildcard, "", `listenerConfigurations: [`+admin+`]`))
	if text := printed(t, p); p.Healthy() || !strings.Contains(text, "admin.example.com (through the rules for *.example.com). Require Access for the wider hostname too, or ask the platform team to set dataPlane: Envoy") {
		t.Errorf("Healthy = %t, want false and a remark about the gap:\n%s", p.Healthy(), text)
	}
	p = planOf(t, accessCluster(wildcard, "", `listenerConfigurations: [`+admin+`, {protocolPort: "*", hostname: "*.example.com", access: {required: true, teamName: example, audTags: [another]}}]`))
	if !p.Healthy() {
		t.Errorf("Healthy = false with Access for the wildcard:\n%s", printed(t, p))
	}
}

// The table shows which rules require Access, and --why says what the request needs.
func TestThePlanShowsWhichRulesRequireAccess(t *testing.T) {
	p := planOf(t, accessCluster(wildcard, "", `listenerConfigurations: [{protocolPort: "*", hostname: admin.example.com, `+required+`}]`))
	text := printed(t, p)
	for _, want := range []string{
		"  #  HOSTNAME           PATH  SERVICE                                ACCESS              FROM",
		"  0  admin.example.com  *     http://web.infra.svc.cluster.local:80  protected: example  HTTPRoute infra/web rule 0",
		"  1  *.example.com      *     http://web.infra.svc.cluster.local:80  open                HTTPRoute infra/web rule 0",
		"rulesPerTunnel 2 of ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the table does not contain %q:\n%s", want, text)
		}
	}
	const need = "requires a token of Cloudflare Access: team example, AUD tag tag"
	for host, want := range map[string]bool{"admin.example.com": true, "other.example.com": false} {
		e := p.Explain(routing.Request{Host: host, Path: "/"})
		var out bytes.Buffer
		if err := e.WriteTable(&out, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "can reach the rules for *.example.com") != want {
			t.Errorf("%s: want the gap %t in the text:\n%s", host, want, out.String())
		}
		if strings.Contains(out.String(), need) != want || (e.Traces[0].Answer.Access != nil) != want {
			t.Errorf("%s requires Access: want %t in the answer %+v and in the text:\n%s", host, want, e.Traces[0].Answer.Access, out.String())
		}
	}
}
