package plan_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// describeRow describes a row in one line.
func describeRow(r *plan.HostnameRow) string {
	return fmt.Sprintf("%s %s: %s, access %q, routes %v, also on %v", r.Gateway, r.Hostname, strings.Join(r.States(), "+"), r.Access, r.Routes, r.AlsoOn)
}

func TestHostnameRowsJoinListenersAndRoutes(t *testing.T) {
	other := strings.Replace(sharedAs("other"), "allowedListeners", "#", 1)
	h := planOf(t, shared, teams, other).NewHostnames()
	var got []string
	for i := range h.Rows {
		got = append(got, describeRow(&h.Rows[i]))
	}
	want := []string{
		`infra/shared : NotAllowed, access "", routes [], also on []`,
		`infra/other home.example.com: served, access "open", routes [], also on [infra/shared]`,
		`infra/shared home.example.com: served+HostnameConflict, access "open", routes [], also on [infra/other]`,
		`infra/shared team.example.com: served, access "open", routes [HTTPRoute team/web], also on []`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	row := h.Find("infra/shared", "team.example.com")
	for text, want := range map[string]bool{"team.ex": true, "listenerset team/admitted": true, "httproute team/web": true, "home": false} {
		if row.Mentions(text) != want {
			t.Errorf("Mentions(%q) = %t, want %t", text, !want, want)
		}
	}
	if !row.Concerns("team") || row.Concerns("infra") {
		t.Error("the row concerns the namespace infra, or not team")
	}
	if similar := h.Similar("teams.example.com", 3); len(similar) == 0 || similar[0] != row {
		t.Errorf("similar to teams.example.com: %v", similar)
	}
}

const splitRoutes = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: split, namespace: infra}
spec:
  parentRefs: [{name: shared}]
  rules:
  - matches: [{path: {value: /a}}]
    filters: [{type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x, value: "1"}]}}]
    backendRefs: [{name: web, port: 80, weight: 90}, {name: canary, port: 80, weight: 10}]
  - matches: [{path: {value: /a}}]
    backendRefs: [{name: missing, port: 80}]
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: infra}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: canary, namespace: infra}, spec: {ports: [{port: 80}]}}
`

// withEnvoy makes Envoy the data plane of the Gateways of the default GatewayClass.
const withEnvoy = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: envoy, namespace: infra}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: envoy, namespace: infra}
spec: {dataPlane: Envoy}
`

func TestHostnameEntriesHaveBackendsAndShadows(t *testing.T) {
	row := planOf(t, shared, splitRoutes, withEnvoy).NewHostnames().Find("infra/shared", "home.example.com")
	entries := row.Entries()
	if len(entries) != 2 {
		t.Fatalf("%d entries, want 2: %+v", len(entries), entries)
	}
	want := plan.Action{
		Backends: []plan.ActionBackend{
			{Backend: "http://web.infra.svc.cluster.local:80", Object: plan.Owner{Kind: "Service", Namespace: "infra", Name: "web"}, Weight: 90, Percent: 90},
			{Backend: "http://canary.infra.svc.cluster.local:80", Object: plan.Owner{Kind: "Service", Namespace: "infra", Name: "canary"}, Weight: 10, Percent: 10},
		},
		Changes: []string{`response header x set to "1"`},
	}
	if diff := cmp.Diff(want, entries[0].Action); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
	second := entries[1]
	if !strings.Contains(second.Failure, "BackendNotFound") || len(second.ShadowedBy) != 1 ||
		second.ShadowedBy[0].Rule != 0 || second.ShadowedBy[0].Reason != "it is a later rule of the same route" {
		t.Errorf("the second rule: %+v", second)
	}
}

func TestJSONContainsTheEntriesOfBothDataPlanes(t *testing.T) {
	for _, manifests := range [][]string{{shared, splitRoutes}, {shared, splitRoutes, withEnvoy}} {
		g := decoded(t, planOf(t, manifests...))["gateways"].([]any)[0].(map[string]any)
		entries, shadowed := g["entries"].([]any), g["shadowed"].([]any)
		if len(entries) != 1 || entries[0].(map[string]any)["match"] != "PathPrefix /a" {
			t.Errorf("%s: entries %v", g["dataPlane"], entries)
		}
		if len(shadowed) != 1 {
			t.Fatalf("%s: shadowed %v", g["dataPlane"], shadowed)
		}
		route := map[string]any{"kind": "HTTPRoute", "namespace": "infra", "name": "split"}
		want := map[string]any{
			"hostname": "home.example.com", "match": "PathPrefix /a", "route": route, "rule": 1.0, "matchIndex": 0.0,
			"before": []any{map[string]any{
				"hostname": "home.example.com", "match": "PathPrefix /a", "route": route, "rule": 0.0, "matchIndex": 0.0, "reason": "it is a later rule of the same route",
			}},
		}
		if diff := cmp.Diff(any(want), shadowed[0]); diff != "" {
			t.Errorf("%s: shadowed (-want +got):\n%s", g["dataPlane"], diff)
		}
	}
}

// For each case of the decisions, the data plane gets exactly the entries that are not
// shadowed.
func TestHostnameEntriesAreThoseOfTheDataPlane(t *testing.T) {
	files, err := filepath.Glob("../gateway/testdata/*.in.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no inputs: %v", err)
	}
	compared := 0
	for _, file := range files {
		source, err := state.FromFiles([]string{file}, manifest.Options{}, options.ControllerName, config.DefaultClassName)
		if err != nil {
			continue // not all inputs are valid manifests
		}
		p := buildPlan(t, source, now)
		h := p.NewHostnames()
		for i := range p.Gateways {
			compared += compareEntries(t, file, &p.Gateways[i], h)
		}
	}
	if compared < 400 {
		t.Errorf("only %d entries were compared", compared)
	}
}

// compareEntries compares the entries of the Gateway with the table or the configuration. It
// returns their number.
func compareEntries(t *testing.T, file string, g *plan.Gateway, h *plan.Hostnames) int {
	t.Helper()
	wanted, compared := wantedEntries(g), 0
	for i := range h.Rows {
		row := &h.Rows[i]
		if row.Gateway != g.Namespace+"/"+g.Name || row.IsClosed() {
			continue
		}
		own, all := reachable(g, row)
		want := wanted[row.Hostname]
		if !slices.Equal(want, own) && !slices.Equal(want, all) {
			t.Errorf("%s: %s: entries\n%s\nwant\n%s", filepath.Base(file), row.Hostname, strings.Join(all, "\n"), strings.Join(want, "\n"))
		}
		compared += len(want)
	}
	return compared
}

// wantedEntries describes what the data plane gets, by hostname.
func wantedEntries(g *plan.Gateway) map[string][]string {
	wanted := map[string][]string{}
	if g.DataPlane == "Envoy" {
		for _, e := range g.Entries {
			wanted[e.Hostname] = append(wanted[e.Hostname], fmt.Sprintf("%s %s %s", e.Route, e.Match, e.Action))
		}
		return wanted
	}
	if g.Config == nil {
		return wanted
	}
	for _, rule := range g.Config.Ingress {
		if rule.Service != "http_status:404" && rule.Service != "http_status:403" {
			wanted[rule.Hostname] = append(wanted[rule.Hostname], rule.Service)
		}
	}
	return wanted
}

// reachable describes the entries that requests can reach: those with the row's own hostname,
// and all.
func reachable(g *plan.Gateway, row *plan.HostnameRow) (own, all []string) {
	for _, e := range row.Entries() {
		text := fmt.Sprintf("%s %s %s", e.Route, e.Match, &e.Action)
		if g.DataPlane != "Envoy" {
			text = fmt.Sprintf("http_status:%d", e.Action.Status)
			if len(e.Action.Backends) > 0 {
				text, _, _ = strings.Cut(e.Action.Backends[0].Backend, " (ServiceImport ")
			}
		}
		if len(e.ShadowedBy) > 0 || text == "http_status:404" || text == "http_status:403" {
			continue
		}
		all = append(all, text)
		if e.Hostname == row.Hostname {
			own = append(own, text)
		}
	}
	return own, all
}

func TestHostnamesCanBeReadConcurrently(t *testing.T) {
	h := planOf(t, shared, teams).NewHostnames()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range h.Rows {
				h.Rows[i].Entries()
				h.Rows[i].Requirement()
			}
		})
	}
	group.Wait()
}
