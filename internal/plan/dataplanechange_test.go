package plan_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// changingManifests returns a Gateway whose GatewayClass asks for a data plane, and its
// Tunnel with a status.
func changingManifests(t *testing.T, wanted, status string) string {
	t.Helper()
	manifests, err := os.ReadFile("testdata/dataplane.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(manifests), "WANTED", wanted, 1) + tunnelObject(status)
}

var changeCases = []struct{ name, wanted, status string }{
	{"to Envoy", "Envoy", "dataPlane: IngressRules"},
	{"to Envoy, in progress", "Envoy", "dataPlane: IngressRules, dataPlaneChange: {to: Envoy, phase: AddingEnvoy, startedAt: \"2026-01-01T00:00:00Z\"}, conditions: " +
		"[{type: DataPlaneApplied, status: \"False\", reason: DataPlaneChanging, message: Pod x is not ready., lastTransitionTime: \"2026-01-01T00:00:00Z\"}]"},
	{"to Envoy, reversed", "IngressRules", "dataPlane: IngressRules, dataPlaneChange: {to: Envoy, phase: AddingEnvoy, startedAt: \"2026-01-01T00:00:00Z\"}"},
	{"to ingress rules", "IngressRules", "dataPlane: Envoy"},
	{"to ingress rules, in progress", "IngressRules", "dataPlane: IngressRules, dataPlaneChange: {to: IngressRules, phase: RemovingEnvoy, startedAt: \"2026-01-01T00:00:00Z\"}"},
	{"no change", "Envoy", "dataPlane: Envoy"},
}

// The plan shows the data plane in effect with its rules or routes, and what the change
// does to the routes and at Cloudflare.
func TestDataPlaneChangePlanMatchesTheGoldenFile(t *testing.T) {
	var got bytes.Buffer
	for _, test := range changeCases {
		c := newAccount(t)
		c.SetConfiguration(c.id, *planOf(t, changingManifests(t, "IngressRules", "")).Gateways[0].Config)
		if strings.HasPrefix(test.status, "dataPlane: Envoy") {
			c.SetConfiguration(c.id, *planOf(t, changingManifests(t, "Envoy", "")).Gateways[0].Config)
		}
		p := planOf(t, changingManifests(t, test.wanted, test.status+", tunnelID: "+string(c.id)))
		fmt.Fprintf(&got, "# %s\n", test.name)
		if err := p.WriteTable(&got, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		if err := p.Compare(t.Context(), c.open); err != nil {
			t.Fatal(err)
		}
		got.WriteString("\n")
		if err := p.WriteDiff(&got, false); err != nil {
			t.Fatal(err)
		}
		got.WriteString("\n")
	}
	compareGolden(t, "testdata/dataplane.txt", got.String())
}

// manyRoutes returns routes with 128 rules each.
func manyRoutes(count int) string {
	var b strings.Builder
	matches := strings.TrimSuffix(strings.Repeat("{path: {value: /N}}, ", 8), ", ")
	for route := range count {
		var rules []string
		for rule := range 16 {
			for match := range 8 {
				matches = strings.Replace(matches, "/N", fmt.Sprintf("/%d-%d", rule, match), 1)
			}
			rules = append(rules, "{matches: ["+matches+"], backendRefs: [{name: web, port: 8080}]}")
			matches = strings.TrimSuffix(strings.Repeat("{path: {value: /N}}, ", 8), ", ")
		}
		fmt.Fprintf(&b, "\n---\n{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r%02d, namespace: infra}, "+
			"spec: {parentRefs: [{name: g}], hostnames: [r%[1]d.example.com], rules: [%s]}}", route, strings.Join(rules, ", "))
	}
	return b.String()
}

func TestPlanOfIngressRulesAboveTheLimits(t *testing.T) {
	c := newAccount(t)
	routes := manyRoutes(20)
	c.SetConfiguration(c.id, *planOf(t, changingManifests(t, "Envoy", ""), routes).Gateways[0].Config)
	p := planOf(t, changingManifests(t, "IngressRules", "dataPlane: Envoy, tunnelID: "+string(c.id)), routes)
	const message = "The Gateway needs 2563 ingress rules, but limits.rulesPerTunnel of the GatewayClass is 1000. Envoy keeps serving until you remove routes or raise the limit."
	for wide, last := range map[bool]string{false: "\n5 more; --wide lists them\n", true: "\n+ HTTPRoute infra/timeout on Gateway infra/g: UnsupportedValue: "} {
		var out bytes.Buffer
		if err := p.WriteTable(&out, plan.Style{Wide: wide}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"\nSettings: data plane Envoy (does not change to IngressRules), ", "\nGateway infra/g: LimitExceeded: " + message + "\n", "With IngressRules, 15 routes have a different status", last} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the table does not contain %q:\n%s", want, out.String()[strings.Index(out.String(), "\nLimits"):])
			}
		}
	}
	if p.Healthy() {
		t.Error("the plan is healthy, although the data plane does not change")
	}
	change := decoded(t, p)["gateways"].([]any)[0].(map[string]any)["dataPlaneChange"].(map[string]any)
	if change["to"] != "IngressRules" || change["reason"] != "LimitExceeded" || change["message"] != message || len(change["routes"].([]any)) != 15 {
		t.Errorf("dataPlaneChange = %v with %d routes", change, len(change["routes"].([]any)))
	}
	if err := p.Compare(t.Context(), c.open); err != nil {
		t.Fatal(err)
	}
	wantDiff(t, p, "Gateway infra/g: "+message+"\nGateway infra/g: no difference\n")
}

func TestJSONContainsTheStatusesAfterADataPlaneChange(t *testing.T) {
	p := planOf(t, changingManifests(t, "Envoy", "dataPlane: IngressRules, tunnelID: t"))
	if !strings.Contains(printed(t, p), `"dataPlaneChange"`) {
		t.Fatal("the output contains no dataPlaneChange")
	}
	accepted := map[string]string{}
	for _, r := range p.Gateways[0].DataPlaneChange.Routes {
		for _, parent := range r.Status.Parents {
			accepted[r.Route.String()] = string(meta.FindStatusCondition(parent.Conditions, "Accepted").Status)
		}
	}
	if diff := cmp.Diff(map[string]string{"HTTPRoute infra/some": "True", "HTTPRoute infra/timeout": "True"}, accepted); diff != "" {
		t.Errorf("the routes that Envoy judges differently differ (-want +got):\n%s", diff)
	}
	if status := printed(t, planOf(t, changingManifests(t, "Envoy", "dataPlane: Envoy, tunnelID: t"))); strings.Contains(status, "dataPlaneChange") {
		t.Error("without a change, the output contains dataPlaneChange")
	}
}

// If routes and the data plane change at the same time, there are two writes. The
// difference compares with the last write.
func TestDiffComparesWithTheEndOfADataPlaneChange(t *testing.T) {
	c := newAccount(t)
	p := planOf(t, changingManifests(t, "Envoy", "dataPlane: IngressRules, tunnelID: "+string(c.id)+", configuration: {hash: other}"))
	if err := p.Compare(t.Context(), c.open); err != nil {
		t.Fatal(err)
	}
	d := p.Gateways[0].Diff
	if !strings.Contains(d.Unified, "+- service: http://127.0.0.1:10080") || !strings.Contains(d.Unified, "-- hostname: old.example.com") || strings.Contains(d.Unified, "both.example.com") {
		t.Errorf("the difference is\n%s", d.Unified)
	}
	if !slices.Contains(d.Notes, "An external change replaced the tunnel configuration.") || len(d.Notes) != 3 {
		t.Errorf("notes %q, want both phases and the external change", d.Notes)
	}
	for _, call := range c.Calls() {
		switch call.Op {
		case fake.OpConfiguration, fake.OpTunnel, fake.OpFindTunnel:
		default:
			t.Errorf("Compare calls %s, which is not necessary", call.Op)
		}
	}
}

func TestEnvoyCanBeTriedBeforeTheDataPlaneChanges(t *testing.T) {
	var out bytes.Buffer
	var bootstrap map[string]any
	p := renderEnvoy(t, changingManifests(t, "Envoy", "dataPlane: IngressRules, tunnelID: t"))
	decodeOutput(t, &out, p.WriteEnvoy, &bootstrap)
	if !strings.Contains(out.String(), "timeout.example.com") {
		t.Error("the configuration does not contain the route that only Envoy serves")
	}
	source := read(t, changingManifests(t, "IngressRules", "dataPlane: IngressRules, tunnelID: t"), "-")
	if err := buildPlan(t, source, now).RenderEnvoy(t.Context(), source); err == nil || !strings.Contains(err.Error(), "has the data plane IngressRules") {
		t.Errorf("without a change, the error is %v", err)
	}
}
