package plan_test

import "testing"

// loopGateway is a Gateway with Envoy, and a route that certainly redirects to itself below /a, and
// for one request below /b.
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
	possibleLoop = `{matches: [{path: {value: /b}}], filters: [{type: RequestRedirect, requestRedirect: {path: {type: ReplaceFullPath, replaceFullPath: /b}}}]}`
)

func TestARedirectLoopIsReportedOnce(t *testing.T) {
	p := planOf(t, loopGateway, webRoute("one", "[a.example.com]", "["+certainLoop+", "+possibleLoop+"]"))
	wantLines(t, table(t, p), []string{
		`HTTPRoute team/one at Gateway infra/shared: RedirectLoop: The route redirects requests to their own URL, so visitors get too many redirects: rule 0 match 0 ("a.example.com"). Change the redirect or the match.`,
	}, nil)
	if p.Healthy() {
		t.Error("the plan is healthy")
	}
}
