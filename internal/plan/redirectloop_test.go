package plan_test

import (
	"bytes"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// loopGateway is a Gateway with Envoy, and a route that certainly redirects to itself
// below /a, and for one request below /b.
const loopGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: infra, name: defaults}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: defaults, namespace: infra}
spec: {dataPlane: Envoy}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners:
  - {name: a, hostname: a.example.com, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: other, hostname: a.example.com, port: 8080, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
`

const (
	certainLoop  = `{matches: [{path: {value: /a}}], filters: [{type: RequestRedirect, requestRedirect: {hostname: a.example.com}}]}`
	possibleLoop = `{matches: [{path: {value: /b}}], filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: "/b/;c"}}}]}`
)

func TestARedirectLoopIsReportedOnce(t *testing.T) {
	p := planOf(t, loopGateway, webRoute("one", "[a.example.com]", "["+certainLoop+", "+possibleLoop+"]"))
	wantLines(t, table(t, p), []string{
		`HTTPRoute team/one on Gateway infra/shared: RedirectLoop: The route redirects requests to their own URL, so visitors get too many redirects: rule 0 match 0 ("a.example.com"). Change the redirect or the match.`,
	}, nil)
	if p.Healthy() {
		t.Error("the plan is healthy")
	}
}

// Only a request decides whether a rule without a certain loop redirects it to itself.
func TestARequestThatLoopsIsExplained(t *testing.T) {
	const loop = "  the redirect leads to the requested URL itself, so visitors get too many redirects\n"
	p := planOf(t, loopGateway, webRoute("one", "[a.example.com]", "["+possibleLoop+"]"))
	if !p.Healthy() {
		t.Error("the plan is not healthy")
	}
	for text, loops := range map[string]bool{"a.example.com/b/;c?x=1": true, "http://a.example.com/b/;c": true, "a.example.com/b": false} {
		request, err := routing.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := p.Explain(request).WriteTable(&out, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(out.Bytes(), []byte(loop)); got != loops {
			t.Errorf("%s: the explanation names a loop: %t, want %t:\n%s", text, got, loops, &out)
		}
	}
}
