package plan_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// An explanation names the ClusterIP if Envoy connects to it, and the pods behind it.
func TestExplanationNamesEndpoints(t *testing.T) {
	request := routing.Request{Host: "admin.example.com", Path: "/"}
	for name, test := range map[string]struct {
		replaced   []string
		text, json string
	}{
		"pods": {nil, "\n  ready endpoints: 192.0.2.21:8080\n  terminating endpoints: 192.0.2.22:8080\n  endpoints that are not ready: 192.0.2.23:8080\n", `"endpoints":{"ready":["192.0.2.21:8080"],"terminating":["192.0.2.22:8080"],"unready":["192.0.2.23:8080"]}`},
		"a ClusterIP": {
			[]string{"clusterIP: 192.0.2.11,", "clusterIP: 192.0.2.11, internalTrafficPolicy: Local,"},
			"\n  Envoy connects to the ClusterIP 192.0.2.11\n  ready endpoints: 192.0.2.21:8080\n", `"clusterIP":"192.0.2.11","endpoints":{"ready":["192.0.2.21:8080"]`,
		},
		"backends Service": {
			[]string{"dataPlane: Envoy", "dataPlane: Envoy\n  connector: {envoy: {backends: Service}}"},
			"\n  Envoy connects to the ClusterIP 192.0.2.11\n", `"clusterIP":"192.0.2.11"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := read(t, envoyManifests(t, test.replaced...), "-")
			p := buildPlan(t, source, now)
			if err := p.ReadEndpoints(t.Context(), source, request); err != nil {
				t.Fatal(err)
			}
			e := p.Explain(request)
			var text bytes.Buffer
			if err := e.WriteTable(&text, plan.Style{}); err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text.String(), test.text) || !strings.Contains(string(encoded), test.json) {
				t.Errorf("the explanation does not contain %q and %s:\n%s\n%s", test.text, test.json, text.String(), encoded)
			}
		})
	}
}
