package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A GatewayClass and a Gateway with settings. The settings of the GatewayClass are
// separate, so that a test can omit them.
const (
	configuredClass = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: platform, name: defaults}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: own}}
  listeners: [{name: web, port: 443, protocol: HTTPS, hostname: www.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: infra}
spec: {parentRefs: [{name: web}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: own, namespace: infra}
spec:
  originRequest: {connectTimeout: 5s, tlsTimeout: 6s}
  listenerConfigurations:
  - {protocolPort: "HTTPS:443", originRequest: {tlsTimeout: 7s}, access: {required: true, teamName: example, audTags: [tag]}}
`
	classSettings = `
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: defaults, namespace: platform}
spec: {originRequest: {connectTimeout: 1m}}
`
)

func TestConfigContainsTheMergedSettings(t *testing.T) {
	p := planOf(t, configuredClass, classSettings)
	if !p.Healthy() {
		t.Errorf("Healthy = false:\n%s", printed(t, p))
	}
	got := decoded(t, p)["gateways"].([]any)[0].(map[string]any)["config"]
	want := map[string]any{
		"originRequest": map[string]any{"connectTimeout": 60.0, "tlsTimeout": 6.0},
		"ingress": []any{
			map[string]any{
				"hostname": "www.example.com", "service": "http://web.infra.svc.cluster.local:80",
				"originRequest": map[string]any{
					"tlsTimeout": 7.0,
					"access":     map[string]any{"required": true, "teamName": "example", "audTag": []any{"tag"}},
				},
			},
			map[string]any{"service": "http_status:404"},
		},
	}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("config differs (-want +got):\n%s", diff)
	}
}

func TestMissingSettingsOfTheClassRejectTheGateway(t *testing.T) {
	p := planOf(t, configuredClass)
	if p.Healthy() || p.Gateways[0].Config != nil {
		t.Errorf("Healthy = %t, config = %+v; want false and none", p.Healthy(), p.Gateways[0].Config)
	}
	const missing = "spec.parametersRef names TunnelConfiguration platform/defaults, which does not exist. Create it, or correct the reference."
	text := printed(t, p)
	if want := "The Gateway is not accepted, so the controller does not push its configuration: InvalidParameters: GatewayClass cloudflare-tunnel is not accepted: " + missing; !strings.Contains(text, want) {
		t.Errorf("the table does not contain %q:\n%s", want, text)
	}
	for _, status := range p.Statuses {
		if status.Kind == "GatewayClass" {
			accepted := meta.FindStatusCondition(status.Status.(gatewayv1.GatewayClassStatus).Conditions, "Accepted")
			if accepted == nil || accepted.Reason != "InvalidParameters" || accepted.Message != missing {
				t.Errorf("condition Accepted of the GatewayClass = %+v, want the message %q", accepted, missing)
			}
			return
		}
	}
	t.Error("the plan has no status of the GatewayClass")
}
