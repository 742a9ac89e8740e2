package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// read reads manifests from files, or from text for the path "-".
func read(t *testing.T, text string, paths ...string) *state.Source {
	t.Helper()
	files, err := state.FromFiles(paths, manifest.Options{Stdin: strings.NewReader(text)}, options.ControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func planOf(t *testing.T, manifests ...string) *plan.Plan {
	t.Helper()
	return buildPlan(t, read(t, strings.Join(manifests, "\n---\n"), "-"), now)
}

func buildPlan(t *testing.T, files *state.Source, now time.Time) *plan.Plan {
	t.Helper()
	p, err := plan.Build(t.Context(), files, options, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// printed returns a plan's table and JSON encoding.
func printed(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(p); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// decoded returns a plan's decoded JSON encoding.
func decoded(t *testing.T, p *plan.Plan) map[string]any {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var value map[string]any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

const (
	// shared is a Gateway that allows ListenerSets from namespaces with a label.
	shared = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: Selector, selector: {matchLabels: {shared: allowed}}}}
  listeners: [{name: home, hostname: home.example.com, port: 80, protocol: HTTP}]
`
	// rejected is a Gateway that is not accepted.
	rejected = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: rejected, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  addresses: [{type: IPAddress, value: 192.0.2.1}]
  listeners: [{name: home, port: 80, protocol: HTTP}]
`
	teams = `
{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {shared: allowed}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: admitted, namespace: team}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners:
  - {name: a, hostname: team.example.com, port: 80, protocol: HTTP}
  - {name: b, hostname: home.example.com, port: 80, protocol: HTTP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: older-but-outside, namespace: outside, creationTimestamp: "2020-01-01T00:00:00Z"}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners: [{name: a, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team}
spec:
  parentRefs: [{kind: ListenerSet, name: admitted}]
  rules:
  - matches: [{path: {type: PathPrefix, value: /api}}]
    backendRefs: [{name: web, port: 80}]
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}
`
)

// jsonKeys collects every object's keys in value by its path. It does not descend into
// statuses, which are API types.
func jsonKeys(place string, value any, into map[string][]string) {
	switch v := value.(type) {
	case map[string]any:
		known := map[string]bool{}
		for _, key := range into[place] {
			known[key] = true
		}
		for key, inner := range v {
			known[key] = true
			if key != "status" {
				jsonKeys(place+"."+key, inner, into)
			}
		}
		into[place] = slices.Sorted(maps.Keys(known))
	case []any:
		for _, inner := range v {
			jsonKeys(place+"[]", inner, into)
		}
	}
}

func TestJSONHasExactlyTheDocumentedKeys(t *testing.T) {
	got := map[string][]string{}
	jsonKeys("", any(decoded(t, planOf(t, shared, rejected, teams, detached))), got)
	want := map[string][]string{
		"":                                 {"gateways", "mistakes", "statuses"},
		".mistakes[]":                      {"message", "object"},
		".mistakes[].object":               {"kind", "name", "namespace"},
		".gateways[]":                      {"access", "attachedListenerSets", "config", "dataPlane", "entries", "limits", "listeners", "name", "namespace", "shadowed", "tenants", "warnings"},
		".gateways[].entries[]":            {"action", "backends", "hostname", "match", "matchIndex", "route", "rule"},
		".gateways[].entries[].backends[]": {"backend", "weight"},
		".gateways[].entries[].route":      {"kind", "name", "namespace"},
		".gateways[].limits[]":             {"hostname", "limit", "name", "tenant", "used"},
		".gateways[].tenants[]":            {"instructions", "labeled", "listeners", "name", "refusedListeners", "refusedRoutes", "rules"},
		".gateways[].listeners[]":          {"accepted", "attachedRoutes", "conflicted", "hostname", "name", "owner", "port", "programmed", "protocol", "reason", "resolvedRefs"},
		".gateways[].listeners[].owner":    {"kind", "name", "namespace"},
		".gateways[].config":               {"ingress"},
		".gateways[].config.ingress[]":     {"hostname", "path", "service"},
		".statuses[]":                      {"apiVersion", "kind", "name", "namespace", "status"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys differ (-want +got):\n%s", diff)
	}
}

// Programs can rely on every key, except in config.
func TestJSONContainsEmptyFields(t *testing.T) {
	p := decoded(t, planOf(t, `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g}
spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}
`))
	want := map[string]any{
		"namespace": "default", "name": "g", "attachedListenerSets": 0.0, "dataPlane": "IngressRules", "entries": []any{}, "shadowed": []any{}, "access": []any{},
		"listeners": []any{map[string]any{
			"owner": map[string]any{"kind": "Gateway", "namespace": "default", "name": "g"},
			"name":  "a", "hostname": "", "port": 80.0, "protocol": "HTTP",
			"accepted": true, "conflicted": false, "resolvedRefs": true, "programmed": true, "reason": "", "attachedRoutes": 0.0,
		}},
		"config": map[string]any{"ingress": []any{map[string]any{"service": "http_status:404"}}},
		"limits": []any{
			map[string]any{"name": "rulesPerTunnel", "used": 0.0, "limit": 1000.0, "tenant": "", "hostname": ""},
			map[string]any{"name": "listenersPerNamespace", "used": 0.0, "limit": 64.0, "tenant": "", "hostname": ""},
			map[string]any{"name": "regularExpressionsPerNamespace", "used": 0.0, "limit": 1000.0, "tenant": "", "hostname": ""},
			map[string]any{"name": "regularExpressionsPerTunnel", "used": 0.0, "limit": 5000.0, "tenant": "", "hostname": ""},
		},
		"tenants": []any{}, "warnings": []any{},
	}
	if diff := cmp.Diff(any([]any{want}), p["gateways"]); diff != "" {
		t.Errorf("gateways differ (-want +got):\n%s", diff)
	}
}

func TestJSONWithoutGatewaysHasEmptyLists(t *testing.T) {
	want := map[string]any{"gateways": []any{}, "mistakes": []any{}, "statuses": []any{}}
	for name, manifests := range map[string]string{
		"no Gateway":               `{apiVersion: v1, kind: Namespace, metadata: {name: team}}`,
		"Gateway of another class": strings.Replace(shared, "cloudflare-tunnel", "internal", 1),
	} {
		if diff := cmp.Diff(want, decoded(t, planOf(t, manifests))); diff != "" {
			t.Errorf("%s: the plan differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestConfigOfARejectedGatewayIsNull(t *testing.T) {
	p := decoded(t, planOf(t, shared, rejected))
	got := map[any]bool{}
	for _, g := range p["gateways"].([]any) {
		fields := g.(map[string]any)
		config, ok := fields["config"]
		if !ok {
			t.Errorf("Gateway %v has no key config", fields["name"])
		}
		got[fields["name"]] = config != nil
	}
	if diff := cmp.Diff(map[any]bool{"shared": true, "rejected": false}, got); diff != "" {
		t.Errorf("the Gateways with a config differ (-want +got):\n%s", diff)
	}
}

// row describes a listener.
func row(l plan.Listener) string {
	return fmt.Sprintf("%s %s/%s %s %s", l.Owner.Kind, l.Owner.Namespace, l.Owner.Name, l.Name, l.Reason)
}

func TestListenersAreInOrderOfPrecedence(t *testing.T) {
	p := planOf(t, teams, shared)
	var got []string
	for _, l := range p.Gateways[0].Listeners {
		got = append(got, row(l))
	}
	want := []string{
		"Gateway infra/shared home ",
		"ListenerSet team/admitted a ",
		"ListenerSet team/admitted b HostnameConflict",
		"ListenerSet outside/older-but-outside a NotAllowed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listeners differ (-want +got):\n%s", diff)
	}
}

func TestStatusesAreSortedAndExcludeOtherControllers(t *testing.T) {
	p := planOf(t, teams, shared, rejected, `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: another, namespace: infra}
spec: {gatewayClassName: other, listeners: [{name: home, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: another, namespace: infra}
spec: {parentRefs: [{name: another}]}
`)
	var got []string
	for _, s := range p.Statuses {
		got = append(got, fmt.Sprintf("%s %s %s/%s", s.APIVersion, s.Kind, s.Namespace, s.Name))
	}
	want := []string{
		"gateway.networking.k8s.io/v1 Gateway infra/rejected",
		"gateway.networking.k8s.io/v1 Gateway infra/shared",
		"gateway.networking.k8s.io/v1 GatewayClass /cloudflare-tunnel",
		"gateway.networking.k8s.io/v1 HTTPRoute team/web",
		"gateway.networking.k8s.io/v1 ListenerSet outside/older-but-outside",
		"gateway.networking.k8s.io/v1 ListenerSet team/admitted",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses differ (-want +got):\n%s", diff)
	}
}

// statusParents returns the entries in a route's status.
func statusParents(t *testing.T, p *plan.Plan, route string) []string {
	t.Helper()
	for _, s := range p.Statuses {
		if s.Kind != gateway.KindHTTPRoute || s.Name != route {
			continue
		}
		var parents []string
		for _, entry := range s.Status.(*gatewayv1.RouteStatus).Parents {
			parents = append(parents, fmt.Sprintf("%s by %s", entry.ParentRef.Name, entry.ControllerName))
		}
		slices.Sort(parents)
		return parents
	}
	t.Fatalf("the plan has no status of HTTPRoute %s", route)
	return nil
}

// movedRoute has status entries from this controller for "shared", which is no longer
// its parent, and for "gone", which does not exist, and an entry from another
// controller.
const movedRoute = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: moved, namespace: infra}
spec: {parentRefs: [{name: second}, {name: third}, {name: gone}]}
status:
  parents:
  - parentRef: {name: shared}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - parentRef: {name: gone}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
  - parentRef: {name: third}
    controllerName: example.com/other
    conditions: [{type: Accepted, status: "False", reason: Example, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`

// sharedAs returns the manifest shared with another name.
func sharedAs(name string) string { return strings.Replace(shared, "name: shared", "name: "+name, 1) }

func TestRouteStatusHasTheEntriesOfAllGateways(t *testing.T) {
	p := planOf(t, shared, sharedAs("second"), sharedAs("third"), movedRoute)
	got := slices.DeleteFunc(statusParents(t, p, "moved"), func(entry string) bool { return strings.HasPrefix(entry, "gone ") })
	want := []string{
		"second by tunnelgateway.dev/controller", "third by example.com/other", "third by tunnelgateway.dev/controller",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("entries differ (-want +got):\n%s", diff)
	}
}

func TestStatusEntryOfAMissingGatewayIsRemoved(t *testing.T) {
	p := planOf(t, sharedAs("second"), movedRoute)
	if got := statusParents(t, p, "moved"); slices.Contains(got, "gone by "+config.DefaultControllerName) {
		t.Errorf("entries = %q, want none of the controller for a Gateway that does not exist", got)
	}
}

func TestHealthyRequiresExpectedConditions(t *testing.T) {
	route := func(rules string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r, namespace: infra}\n" +
			"spec:\n  parentRefs: [{name: shared}]\n  rules: " + rules + "\n"
	}
	const service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}"
	for name, test := range map[string]struct {
		manifests []string
		want      bool
	}{
		"no manifests":                   {nil, false},
		"a Gateway":                      {[]string{shared}, true},
		"a Gateway that is not accepted": {[]string{rejected}, false},
		"a conflict and a ListenerSet that is not allowed": {[]string{shared, teams}, false},
		"a route that is served":                           {[]string{shared, service, route("[{backendRefs: [{name: web, port: 80}]}]")}, true},
		"a route without backends":                         {[]string{shared, route("[{}]")}, true},
		"a route to a missing Service":                     {[]string{shared, route("[{backendRefs: [{name: web, port: 80}]}]")}, false},
		"a route that is partially served": {[]string{shared, service, route(
			"[{backendRefs: [{name: web, port: 80}]}, {matches: [{method: GET}], backendRefs: [{name: web, port: 80}]}]")}, false},
		"a class with parameters, without Gateways": {[]string{`
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: example.com, kind: Parameters, name: p}
`}, false},
		"a condition of another controller": {[]string{shared, `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: infra}
spec: {parentRefs: [{name: shared}]}
status:
  parents:
  - parentRef: {name: shared}
    controllerName: example.com/other
    conditions: [{type: Accepted, status: "False", reason: Example, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
`}, true},
	} {
		t.Run(name, func(t *testing.T) {
			manifests := append(test.manifests, "{apiVersion: v1, kind: Namespace, metadata: {name: infra}}")
			if got := planOf(t, manifests...).Healthy(); got != test.want {
				t.Errorf("Healthy = %t, want %t", got, test.want)
			}
		})
	}
}
