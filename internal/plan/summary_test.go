package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

const (
	sharedTunnel = `
apiVersion: tunnelgateway.dev/v1alpha1
kind: Tunnel
metadata: {name: infra.shared, namespace: tunnel-gateway}
spec:
  name: id.infra.shared
  accountID: 0123456789abcdef0123456789abcdef
  controllerName: tunnelgateway.dev/controller
  clusterUID: uid
  deletionPolicy: Delete
  gateway: {namespace: infra, name: shared}
status:
  tunnelID: 11111111-2222-3333-4444-555555555555
  phase: Blocked
  connectors: {desired: 2, ready: 1, summary: 1/2}
  conditions:
  - {type: ConnectorsReady, status: "False", reason: Unavailable, message: One connector is not ready., lastTransitionTime: "2026-01-01T00:00:00Z"}
`
	deleted = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: deleted, namespace: infra, deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: [example.com/wait]}
spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
`
)

func TestSummariesDescribeGatewaysAndTheirTunnels(t *testing.T) {
	p := planOf(t, shared, rejected, teams, sharedTunnel)
	all := p.Summaries()
	if len(all) != 2 || !strings.HasPrefix(all[0].Problem, "The Gateway is not accepted, so the controller does not push its configuration: ") {
		t.Fatalf("summaries: %+v", all)
	}
	if table := printed(t, p); all[1].Problem == "" || !strings.Contains(table, "Gateway infra/shared: "+all[1].Problem) {
		t.Errorf("the table does not contain the problem %q:\n%s", all[1].Problem, table)
	}
	all[1].Problem = ""
	want := plan.GatewaySummary{
		Namespace: "infra", Name: "shared", Class: "cloudflare-tunnel", DataPlane: "IngressRules", Problems: 3,
		Addresses: []string{"11111111-2222-3333-4444-555555555555.cfargotunnel.com"},
		Tunnel: &plan.TunnelSummary{
			Name: "id.infra.shared", ID: "11111111-2222-3333-4444-555555555555", Phase: "Blocked", Connectors: "1/2", Message: "One connector is not ready.",
		},
	}
	if diff := cmp.Diff(want, all[1]); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestUnservedGatewaysHaveReasons(t *testing.T) {
	other := strings.Replace(sharedAs("other"), "cloudflare-tunnel", "internal", 1)
	want := []plan.UnservedGateway{
		{Namespace: "infra", Name: "deleted", Reason: "being deleted", Terminating: true},
		{Namespace: "infra", Name: "other", Reason: `GatewayClass "internal" not found`},
	}
	if diff := cmp.Diff(want, planOf(t, shared, other, deleted).UnservedGateways()); diff != "" {
		t.Errorf("Gateways that are not served (-want +got):\n%s", diff)
	}
}

// Every line that the table prints about a problem is a problem or a remark.
func TestRemarksContainWhatNoConditionReports(t *testing.T) {
	for _, file := range []string{"hostname-annotation-invalid-entries", "unreachable-below-terminator"} {
		p := buildPlan(t, read(t, "", "../gateway/testdata/"+file+".in.yaml"), now)
		for _, warning := range p.RouteWarnings(plan.Style{}) {
			found := false
			for _, remark := range p.Remarks() {
				found = found || remark.Message == warning
			}
			if !found {
				t.Errorf("%s: no remark says %q", file, warning)
			}
		}
		if len(p.Remarks()) == 0 {
			t.Errorf("%s: there are no remarks", file)
		}
	}
}

func TestTenantUsesApplyTheLimitsOfOtherTenants(t *testing.T) {
	g := planOf(t, shared, teams, splitRoutes).Gateways[0]
	got := map[string][]plan.Limit{}
	for _, use := range g.TenantUses() {
		got[use.Text] = use.Uses
	}
	want := map[string][]plan.Limit{
		"infra": {{Name: "listenersPerNamespace", Limit: 64, Tenant: "infra"}, {Name: "regularExpressionsPerNamespace", Tenant: "infra"}},
		"team": {
			{Name: "listenersPerNamespace", Used: 2, Limit: 64, Tenant: "team"},
			{Name: "regularExpressionsPerNamespace", Limit: 1000, Tenant: "team"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("uses (-want +got):\n%s", diff)
	}
}
