package plan_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// whatIf returns the plan of manifests in which every Gateway has the data plane.
func whatIf(t *testing.T, plane v1alpha1.DataPlane, manifests string) *plan.Plan {
	t.Helper()
	o := options
	o.DataPlane = plane
	p, err := plan.Build(t.Context(), read(t, manifests, "-"), o, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gatewaysOf returns the Gateways in the JSON encoding without the data plane change.
func gatewaysOf(t *testing.T, p *plan.Plan) []any {
	t.Helper()
	gateways := decoded(t, p)["gateways"].([]any)
	for _, g := range gateways {
		delete(g.(map[string]any), "dataPlaneChange")
	}
	return gateways
}

// statusesOf returns the statuses in the JSON encoding, except those of GatewayClasses, whose
// settings a what-if does not change.
func statusesOf(t *testing.T, p *plan.Plan) []any {
	t.Helper()
	return slices.DeleteFunc(decoded(t, p)["statuses"].([]any), func(s any) bool { return s.(map[string]any)["kind"] == "GatewayClass" })
}

// A what-if shows what a Gateway has whose settings select the data plane, whether the
// Tunnel exists or not.
func TestAWhatIfShowsTheOtherDataPlane(t *testing.T) {
	for _, test := range []struct {
		settings, plane v1alpha1.DataPlane
		status          string
	}{
		{"IngressRules", "Envoy", ""},
		{"IngressRules", "Envoy", "dataPlane: IngressRules"},
		{"Envoy", "Envoy", "dataPlane: IngressRules"},
		{"Envoy", "IngressRules", ""},
		{"Envoy", "IngressRules", "dataPlane: Envoy"},
	} {
		p := whatIf(t, test.plane, changingManifests(t, string(test.settings), test.status))
		status := test.status
		if status != "" {
			status = "dataPlane: " + string(test.plane)
		}
		want := planOf(t, changingManifests(t, string(test.plane), status))
		if diff := cmp.Diff(gatewaysOf(t, want), gatewaysOf(t, p)); diff != "" {
			t.Errorf("%+v: the Gateways differ (-settings +what-if):\n%s", test, diff)
		}
		if diff := cmp.Diff(statusesOf(t, want), statusesOf(t, p)); diff != "" {
			t.Errorf("%+v: the statuses differ (-settings +what-if):\n%s", test, diff)
		}
		if got := decoded(t, p)["whatIf"]; !cmp.Equal(got, map[string]any{"dataPlane": string(test.plane)}) {
			t.Errorf("%+v: whatIf = %v", test, got)
		}
	}
}

func TestAWhatIfListsTheRoutesThatDiffer(t *testing.T) {
	for _, status := range []string{"", "dataPlane: IngressRules"} {
		p := whatIf(t, "Envoy", changingManifests(t, "IngressRules", status))
		text := table(t, p)
		for _, want := range []string{
			"This is a what-if: it shows every Gateway with the data plane Envoy, independently of the settings.\n",
			"\nSettings: data plane Envoy (instead of IngressRules), ",
			"\nWith Envoy, 2 routes have a different status (- now, + after the change):\n- HTTPRoute infra/some: Dropped Rule 0: ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the table does not contain %q:\n%s", want, text)
			}
		}
		change := p.Gateways[0].DataPlaneChange
		if change == nil || len(change.Routes) != 2 || len(change.Routes[1].Status.Parents) != 1 || change.Routes[1].Status.Parents[0].Conditions[0].Status != "True" {
			t.Fatalf("the change is %+v, want a route that is accepted after it", change)
		}
	}
	if p := whatIf(t, "IngressRules", changingManifests(t, "IngressRules", "dataPlane: IngressRules")); p.Gateways[0].DataPlaneChange != nil {
		t.Errorf("a what-if with the present data plane has the change %+v", p.Gateways[0].DataPlaneChange)
	}
}

// A change that cannot begin is a problem in a what-if too.
func TestAWhatIfReportsAChangeThatCannotBegin(t *testing.T) {
	p := whatIf(t, "IngressRules", changingManifests(t, "Envoy", "dataPlane: Envoy")+manyRoutes(20))
	if text := table(t, p); !strings.Contains(text, "LimitExceeded: ") || p.Healthy() {
		t.Errorf("Healthy = %t, and the table is\n%s", p.Healthy(), text)
	}
}

func TestAWhatIfExplainsRequests(t *testing.T) {
	manifests := changingManifests(t, "IngressRules", "dataPlane: IngressRules")
	request := routing.Request{Host: "g.example.com", Path: "/"}
	for plane, p := range map[string]*plan.Plan{"IngressRules": planOf(t, manifests), "Envoy": whatIf(t, "Envoy", manifests)} {
		e := p.Explain(request)
		var out bytes.Buffer
		if err := e.WriteTable(&out, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		if announced := strings.HasPrefix(out.String(), "This is a what-if: "); announced != (plane == "Envoy") || (e.WhatIf != nil) != announced {
			t.Errorf("%s: the explanation is\n%s", plane, out.String())
		}
	}
}
