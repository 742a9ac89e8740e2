package cli_test

import (
	"strings"
	"testing"
)

// expectedToFail fails the test if the defect no longer exists.
func expectedToFail(t *testing.T, reason string, defect bool) {
	t.Helper()
	if !defect {
		t.Errorf("the defect no longer exists: %s", reason)
	}
}

func TestMisplacedKindsAreReported(t *testing.T) {
	withoutCluster(t)
	const parent = "{group: gateway.networking.k8s.io, kind: Gateway, name: shared}"
	ref := strings.Replace(platformManifest, parent, "{group: gateway.networking.x-k8s.io, kind: Gateway, name: shared}", 1)
	expectedToFail(t, "every kind of the experimental group is permitted", run(t, ref, "plan", "-f", "-", "--strict").status == 0)
	route := strings.Replace(platformManifest, "gateway.networking.k8s.io/v1\nkind: HTTPRoute", "networking.k8s.io/v1\nkind: HTTPRoute", 1)
	expectedToFail(t, "the kinds of other groups are skipped", run(t, route, "plan", "-f", "-", "--strict").status == 0)
}

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
	got := run(t, gateway+other+both, "plan", "-f", "-")
	expectedToFail(t, "only one Gateway is considered", strings.Contains(got.stdout, "HostnameClaimed"))
	if got.status != 0 || !strings.Contains(got.stdout, "served.example.com") {
		t.Errorf("status = %d, stdout:\n%s\nstderr:\n%s", got.status, got.stdout, got.stderr)
	}
}
