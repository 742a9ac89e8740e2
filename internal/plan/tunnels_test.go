package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// While a Gateway is paused, the last pushed configuration remains in effect.
func TestPausedAndTerminatingGatewaysAreReported(t *testing.T) {
	const note = "Gateway infra/g: " + tunnel.PausedMessage + "\n"
	for name, manifests := range map[string]string{
		"without a Tunnel object": gatewayFor("new.example.com", paused),
		"with a Tunnel object":    gatewayFor("new.example.com", paused) + tunnelObject("tunnelID: t, configuration: {hash: other}"),
	} {
		p := planOf(t, manifests)
		for output, got := range map[string]string{"table": printed(t, p), "explanation": explanation(t, p, "new.example.com")} {
			if !strings.Contains(got, note) || output == "table" && (strings.Contains(got, "is in effect") || p.Healthy()) {
				t.Errorf("%s of a paused Gateway %s =\n%s", output, name, got)
			}
		}
	}
	hash := planOf(t, gatewayFor("new.example.com", "")).Gateways[0].Config.Hash()
	before := planOf(t, gatewayFor("new.example.com", paused)+tunnelObject("tunnelID: t, configuration: {hash: "+hash+"}"))
	if got := printed(t, before); !strings.Contains(got, "is in effect. "+tunnel.PausedMessage) || !before.Healthy() {
		t.Errorf("the plan of a Gateway that was paused after a push =\n%s", got)
	}
	const remark = "Gateway infra/g: The Gateway is being deleted, so the controller does not push its configuration.\n"
	deleted := planOf(t, strings.Replace(gatewayFor("new.example.com", ""), "  name: g\n", "  name: g\n  deletionTimestamp: \"2026-01-01T00:00:00Z\"\n", 1))
	for output, got := range map[string]string{"table": printed(t, deleted), "explanation": explanation(t, deleted, "new.example.com")} {
		if !strings.Contains(got, remark) {
			t.Errorf("%s of a Gateway that is being deleted =\n%s", output, got)
		}
	}
}

// The conditions and the table contain the problems that the Tunnel objects show, even
// without a request to Cloudflare.
func TestProblemsOfTunnelsAreReported(t *testing.T) {
	hash := planOf(t, gatewayFor("new.example.com", "")).Gateways[0].Config.Hash()
	for name, test := range map[string]struct{ manifests, reason, message string }{
		"settings not applied": {gatewayWithTunnelSettings("new.example.com", existing(otherTunnel)) + tunnelObject("tunnelID: t, configuration: {hash: "+hash+"}"),
			"SettingsNotApplied", "The setting tunnel.existing selects a different tunnel than Tunnel infra.g records"},
		"another cluster":  {gatewayFor("new.example.com", "") + strings.Replace(tunnelObject("tunnelID: t"), "clusterUID: cluster", "clusterUID: restored", 1), "Pending", "Tunnel infra.g was created in another cluster"},
		"a tunnel in use":  {gatewayWithTunnelSettings("new.example.com", existing(otherTunnel)) + kubeSystem + otherTunnelObject(otherTunnel), "Pending", "Another Gateway uses the tunnel of Tunnel infra.g."},
		"external changes": {gatewayFor("new.example.com", "") + tunnelObject("tunnelID: t, contested: true, configuration: {hash: "+hash+"}"), "Pending", "External changes replaced the configuration of tunnel t 3 times"},
		"a deletion":       {gatewayFor("new.example.com", "") + tunnelObject("tunnelID: t, deleting: true"), "Pending", "The controller is deleting the tunnel of a previous Gateway with this name."},
		"no problem":       {gatewayFor("new.example.com", "") + tunnelObject("tunnelID: t"), "Programmed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			chosen := options
			chosen.Account = credentials.Default{}
			p, err := plan.Build(t.Context(), read(t, test.manifests, "-"), chosen, now)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(printed(t, p), "Gateway infra/g: "+test.message) || p.Healthy() != (test.message == "") {
				t.Errorf("Healthy = %t, output =\n%s", p.Healthy(), printed(t, p))
			}
			for _, status := range p.Statuses {
				if status.Kind != gateway.KindGateway {
					continue
				}
				programmed := meta.FindStatusCondition(status.Status.(gatewayv1.GatewayStatus).Conditions, "Programmed")
				if programmed == nil || programmed.Reason != test.reason || !strings.Contains(programmed.Message, test.message) {
					t.Errorf("condition Programmed = %+v, want the reason %s and the message %q", programmed, test.reason, test.message)
				}
			}
		})
	}
}

func TestAddressIsThatOfTheRecordedTunnel(t *testing.T) {
	for manifests, want := range map[string]bool{gatewayFor("new.example.com", "") + tunnelObject("tunnelID: t"): true, gatewayFor("new.example.com", "") + kubeSystem: false} {
		if got := strings.Contains(printed(t, planOf(t, manifests)), `"value": "t.cfargotunnel.com"`); got != want {
			t.Errorf("the output contains the address: %t, want %t", got, want)
		}
	}
}

// explanation returns a request's explanation as text.
func explanation(t *testing.T, p *plan.Plan, host string) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.Explain(routing.Request{Host: host, Path: "/"}).WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
