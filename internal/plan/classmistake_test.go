package plan_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

func TestAnUnknownGatewayClassHasASuggestion(t *testing.T) {
	misspelled := strings.Replace(strings.ReplaceAll(shared, "shared", "other"), "cloudflare-tunnel", "cloudflare-tunel", 1)
	const mistake = "Gateway infra/other: GatewayClass \"cloudflare-tunel\" not found; did you mean cloudflare-tunnel?\n"
	for name, test := range map[string]struct {
		manifests []string
		table     string
	}{
		"only Gateway":      {[]string{misspelled}, "No Gateway uses this controller. GatewayClasses of this controller: cloudflare-tunnel.\n" + mistake},
		"one of two":        {[]string{shared, misspelled}, mistake},
		"resembles none":    {[]string{strings.Replace(misspelled, "cloudflare-tunel", "nginx", 1)}, "No Gateway uses this controller. Gateway infra/other: GatewayClass \"nginx\" not found. GatewayClasses of this controller: cloudflare-tunnel.\n"},
		"another one exist": {[]string{commonManifests, strings.Replace(misspelled, "cloudflare-tunel", "othr", 1)}, "GatewayClass \"othr\" not found. GatewayClasses of this controller: cloudflare-tunnel.\n"},
	} {
		p := planOf(t, test.manifests...)
		if got := table(t, p); !strings.Contains(got, test.table) || strings.Count(got, "cloudflare-tunel\"") > 1 {
			t.Errorf("%s: the table is\n%s\nwant %q once", name, got, test.table)
		}
		if p.Healthy() {
			t.Errorf("%s: the plan is healthy", name)
		}
	}
	err := planOf(t, misspelled).Select(types.NamespacedName{Namespace: "infra", Name: "other"})
	if want := `Gateway infra/other: GatewayClass "cloudflare-tunel" not found; did you mean cloudflare-tunnel?`; err == nil || err.Error() != want {
		t.Errorf("Select = %v, want %s", err, want)
	}
}

// A class for a controller with a similar name is a mistake only while this controller has
// no class: two installations have similar names.
func TestAnUnknownControllerNameHasASuggestion(t *testing.T) {
	class := func(name, controller string) string {
		return "{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: " + name + "}, spec: {controllerName: " + controller + "}}"
	}
	misspelled := class("cloudflare-tunnel", "tunnelgateway.dev/controler")
	want := "GatewayClass cloudflare-tunnel: spec.controllerName is tunnelgateway.dev/controler, but plan uses tunnelgateway.dev/controller. Correct it, or set --controller-name.\n"
	if got := listed(t, planOf(t, shared, misspelled), plan.Style{}); got != want {
		t.Errorf("the mistakes are %q, want %q", got, want)
	}
	for name, manifests := range map[string][]string{
		"with another class":        {shared, misspelled, class("second", "tunnelgateway.dev/controller")},
		"of another implementation": {class("istio", "istio.io/gateway-controller")},
	} {
		if got := listed(t, planOf(t, manifests...), plan.Style{}); got != "" {
			t.Errorf("%s: the mistakes are %q, want none", name, got)
		}
	}
}
