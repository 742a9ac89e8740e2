package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// routeValue is a value that a tenant can write in a route, and how it turns out.
type routeValue struct {
	value any
	want  outcome
}

// outcome is how a route with a value turns out.
type outcome struct {
	kind outcomeKind
	// message is part of the message to the route owner.
	message string
}

type outcomeKind string

const (
	// outcomeAPI means that the API server refuses the route.
	outcomeAPI outcomeKind = "refused by the API"
	// outcomeServed means that Envoy gets the value.
	outcomeServed outcomeKind = "served"
	// outcomeRefused means that the rule answers with an error.
	outcomeRefused outcomeKind = "refused"
	// outcomeOmitted means that the match is left out.
	outcomeOmitted outcomeKind = "omitted"
)

var api, served = outcome{kind: outcomeAPI}, outcome{kind: outcomeServed}

func refused(message string) outcome { return outcome{outcomeRefused, message} }
func omitted(message string) outcome { return outcome{outcomeOmitted, message} }

// No value that the API accepts makes Envoy reject a table. The message about a value that
// is refused names the field and the value.
func TestValuesOfRoutesReachEnvoyOrAreRefused(t *testing.T) {
	tables := map[string]*envoy.Resources{}
	for _, field := range routeFields {
		for i, v := range field.values {
			name := fmt.Sprintf("%s #%d %.60q", field.name, i, fmt.Sprint(v.value))
			t.Run(name, func(t *testing.T) {
				if resources := wantOutcome(t, field, v); resources != nil {
					tables[name] = resources
				}
			})
		}
	}
	t.Run("Envoy", func(t *testing.T) { wantEnvoyAccepts(t, tables) })
}

// wantOutcome checks how a route with the value turns out, and returns what Envoy gets.
func wantOutcome(t *testing.T, field routeField, v routeValue) *envoy.Resources {
	t.Helper()
	// The experimental channel permits fewer header values.
	experimental := strings.Contains(field.spec, "retry: ") || strings.Contains(field.spec, "sessionPersistence: ")
	files, err := state.FromFiles([]string{"-"}, manifest.Options{
		Namespace: "default", Stdin: bytes.NewReader(manifestsWith(t, field.spec, v.value)), Experimental: experimental,
	}, options.ControllerName, config.DefaultClassName)
	if (err != nil) != (v.want.kind == outcomeAPI) {
		t.Fatalf("the API returns the error %v, want the value to be %s", err, v.want.kind)
	}
	if err != nil {
		return nil
	}
	d := decide(t, files, v1alpha1.DataPlaneEnvoy)[0]
	got, message := outcomeServed, ""
	if route := d.result.Routes[0]; len(route.Dropped) > 0 {
		message = strings.TrimSuffix(gateway.DescribeDropped(route.Dropped[0]), ".")
		if got = outcomeRefused; len(route.Dropped[0].Actions) == 0 {
			got = outcomeOmitted
		}
	}
	if got != v.want.kind || !strings.Contains(message, v.want.message) || message != "" && !strings.Contains(message, fieldMessages[field.name]) {
		t.Errorf("the value is %s with the message %q, want %s with %q%q", got, message, v.want.kind, fieldMessages[field.name], v.want.message)
	}
	wantEntries(t, d, got)
	wantConditionMessage(t, d.report, message)
	resources := envoy.Render(d.result.Table)
	if err := resourcesProblem(resources); err != nil {
		t.Errorf("the resources are not valid: %v", err)
	}
	return resources
}

// wantEntries checks that the table serves what the outcome says.
func wantEntries(t *testing.T, d decision, got outcomeKind) {
	t.Helper()
	entries := d.result.Table.Groups[0].Entries
	switch {
	case got == outcomeOmitted && len(entries) > 0:
		t.Errorf("the table has %d entries of the omitted match", len(entries))
	case got != outcomeOmitted && len(entries) == 0:
		t.Error("the table has no entry")
	}
	for i := range entries {
		if problem := entries[i].Action.Problem; (problem != nil) != (got == outcomeRefused) {
			t.Errorf("the action has the problem %+v, and the value is %s", problem, got)
		}
	}
}

// wantConditionMessage checks that the route status has the message.
func wantConditionMessage(t *testing.T, report gateway.Report, message string) {
	t.Helper()
	want := "True Accepted"
	switch {
	case strings.Contains(message, routing.IncompatibleFilters):
		want = "False IncompatibleFilters"
	case message != "":
		want = "False UnsupportedValue"
	}
	for _, c := range report.Routes[0].Parents[0].Conditions {
		if c.Type != string(gatewayv1.RouteConditionAccepted) {
			continue
		}
		if got := fmt.Sprintf("%s %s", c.Status, c.Reason); got != want {
			t.Errorf("Accepted is %s with the message %q, want %s", got, c.Message, want)
		}
		if clause := strings.TrimPrefix(message, "Dropped Rule"); !strings.Contains(c.Message, clause) {
			t.Errorf("the message is %q, want it to contain %q", c.Message, clause)
		}
	}
}

// manifestsWith returns a Gateway, its backends, and a route with the spec, in which the
// value replaces "VALUE".
func manifestsWith(t *testing.T, spec string, value any) []byte {
	t.Helper()
	kind, text, _ := strings.Cut(spec, " ")
	var content map[string]any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	content = replaceValue(content, value).(map[string]any)
	content["parentRefs"] = []any{map[string]any{"name": "shared"}}
	service := func(name, protocol string) map[string]any {
		return map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": "shop", "name": name},
			"spec": map[string]any{"clusterIP": "10.0.0.1", "ports": []any{map[string]any{"port": 80, "appProtocol": protocol}}},
		}
	}
	encoded, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": []any{
		map[string]any{
			"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": map[string]any{"namespace": "shop", "name": "shared"},
			"spec": map[string]any{"gatewayClassName": "cloudflare-tunnel", "listeners": []any{map[string]any{"name": "all", "port": 80, "protocol": "HTTP"}}},
		},
		map[string]any{"apiVersion": "gateway.networking.k8s.io/v1", "kind": kind, "metadata": map[string]any{"namespace": "shop", "name": "route"}, "spec": content},
		service("web", "http"), service("tls", "https"), service("h2c", "kubernetes.io/h2c"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// replaceValue returns the content with the value instead of "VALUE".
func replaceValue(content, value any) any {
	switch c := content.(type) {
	case string:
		if c == "VALUE" {
			return value
		}
	case []any:
		for i := range c {
			c[i] = replaceValue(c[i], value)
		}
	case map[string]any:
		for key := range c {
			c[key] = replaceValue(c[key], value)
		}
	}
	return content
}
