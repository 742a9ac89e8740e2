package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A class and a Gateway with settings, those of the class apart.
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

// "plan reads TunnelConfigurations from its input too and shows the merged
// result in config (originRequest at the top and per rule)."
func TestConfigHasTheMergedSettings(t *testing.T) {
	made := planOf(t, configuredClass, classSettings)
	if !made.Healthy() {
		t.Errorf("the plan is not good:\n%s", printed(t, made))
	}
	got := decoded(t, made)["gateways"].([]any)[0].(map[string]any)["config"]
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
		t.Errorf("the document differs (-want +got):\n%s", diff)
	}
}

// Settings that do not exist are named for the class and for the Gateway, and
// nothing would be pushed.
func TestMissingSettingsAreNamed(t *testing.T) {
	made := planOf(t, configuredClass)
	if made.Healthy() || made.Gateways[0].Config != nil {
		t.Errorf("the plan is good: %t, with the document %+v", made.Healthy(), made.Gateways[0].Config)
	}
	const missing = "spec.parametersRef names TunnelConfiguration platform/defaults, which does not exist."
	text := printed(t, made)
	if want := "Not accepted, so nothing is pushed: InvalidParameters: GatewayClass cloudflare-tunnel is not accepted: " + missing; !strings.Contains(text, want) {
		t.Errorf("the table does not say %q:\n%s", want, text)
	}
	for _, status := range made.Statuses {
		if status.Kind == "GatewayClass" {
			accepted := meta.FindStatusCondition(status.Status.(gatewayv1.GatewayClassStatus).Conditions, "Accepted")
			if accepted == nil || accepted.Reason != "InvalidParameters" || accepted.Message != missing {
				t.Errorf("the class's Accepted is %+v", accepted)
			}
			return
		}
	}
	t.Error("nothing is said about the class")
}
