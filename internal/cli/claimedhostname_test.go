package cli_test

import (
	"strings"
	"testing"
)

func TestHostnameOfAnotherGatewayIsNotClaimed(t *testing.T) {
	withoutCluster(t)
	const other = `---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners: [{name: web, hostname: served.example.com, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
`
	route := problemRoute("one", "a.example.com, served.example.com", "[{backendRefs: [{name: web, port: 80}]}]")
	gateway := strings.Replace(strings.Replace(problemGateway, "KINDS", "", 1), "protocol: HTTP}\n", "protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n", 1)
	both := strings.Replace(route, "[{name: shared, namespace: infra}]", "[{name: shared, namespace: infra, sectionName: exact}, {name: other, namespace: infra}]", 1)
	got := run(t, gateway+other+both, "plan", "-f", "-", "--strict")
	if got.status != 0 || strings.Contains(got.stdout, "HostnameClaimed") {
		t.Errorf("status = %d, stdout:\n%s\nstderr:\n%s", got.status, got.stdout, got.stderr)
	}
}
