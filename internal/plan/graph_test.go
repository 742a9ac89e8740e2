package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// describeGraph returns a line for each edge, with the states of nodes that have a problem,
// sorted.
func describeGraph(g *plan.Graph) []string {
	name := func(i int) string {
		n := &g.Nodes[i]
		text := strings.TrimSpace(n.String() + " " + n.Gateway)
		if n.IsProblem() {
			text += " (" + n.State + ")"
		}
		return text
	}
	lines := make([]string, len(g.Edges))
	for i, e := range g.Edges {
		lines[i] = name(e.From) + " -> " + name(e.To)
		if e.Problem != "" {
			lines[i] += ": " + e.Problem
		}
	}
	slices.Sort(lines)
	return lines
}

func TestGraphFollowsRequestsForAHostname(t *testing.T) {
	p := planOf(t, withEnvoy, shared, teams, splitRoutes)
	got := describeGraph(p.NewGraph(p.NewHostnames(), plan.GraphSelection{Gateway: "infra/shared", Hostname: new("home.example.com")}))
	want := []string{
		"Gateway infra/shared -> Hostname home.example.com infra/shared",
		"Gateway infra/shared -> ListenerSet team/admitted",
		"HTTPRoute infra/split (BackendNotFound) -> Service infra/canary",
		"HTTPRoute infra/split (BackendNotFound) -> Service infra/web",
		"Hostname home.example.com infra/shared -> HTTPRoute infra/split (BackendNotFound)",
		"ListenerSet team/admitted -> Hostname home.example.com infra/shared: HostnameConflict",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

func TestGraphShowsWhatConcernsANamespace(t *testing.T) {
	p := planOf(t, shared, teams, splitRoutes)
	graph := p.NewGraph(p.NewHostnames(), plan.GraphSelection{Namespace: "team"})
	for _, n := range graph.Nodes {
		if n.Kind == "HTTPRoute" && n.Namespace != "team" {
			t.Errorf("the graph of the namespace team shows %s", n.Owner)
		}
	}
	if !slices.ContainsFunc(graph.Nodes, func(n plan.GraphNode) bool { return n.String() == "HTTPRoute team/web" }) {
		t.Errorf("the graph of the namespace team does not show its route:\n%s", strings.Join(describeGraph(graph), "\n"))
	}
}

func TestGraphShowsRejectedRoutesOfANamespace(t *testing.T) {
	lost := `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: infra}
spec: {hostnames: [elsewhere.example.org], parentRefs: [{name: shared}], rules: [{}]}
`
	p := planOf(t, shared, teams, lost)
	want := "Gateway infra/shared -> HTTPRoute infra/lost (NoMatchingListenerHostname): NoMatchingListenerHostname"
	for _, s := range []plan.GraphSelection{{Namespace: "infra"}, {Hostname: new("elsewhere.example.org")}} {
		if got := describeGraph(p.NewGraph(p.NewHostnames(), s)); !slices.Contains(got, want) {
			t.Errorf("the graph lacks %q:\n%s", want, strings.Join(got, "\n"))
		}
	}
	if got := describeGraph(p.NewGraph(p.NewHostnames(), plan.GraphSelection{Namespace: "team"})); slices.Contains(got, want) {
		t.Error("the graph of another namespace shows the rejected route")
	}
}

func TestGraphIsBounded(t *testing.T) {
	var objects strings.Builder
	for i := range 2 * plan.MaxGraphNodes {
		if i%16 == 0 { // a route has at most 16 rules
			fmt.Fprintf(&objects, `
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: large%d, namespace: infra}
spec:
  parentRefs: [{name: shared}]
  hostnames: [home.example.com]
  rules:`, i)
		}
		fmt.Fprintf(&objects, "\n  - {matches: [{path: {value: /p%d}}], backendRefs: [{name: s%d, port: 80}]}", i, i)
	}
	for i := range 2 * plan.MaxGraphNodes {
		fmt.Fprintf(&objects, "\n---\n{apiVersion: v1, kind: Service, metadata: {name: s%d, namespace: infra}, spec: {ports: [{port: 80}]}}", i)
	}
	p := planOf(t, shared, objects.String())
	graph := p.NewGraph(p.NewHostnames(), plan.GraphSelection{Namespace: "infra"})
	omitted := graph.Omitted["Service"] + graph.Omitted["HTTPRoute"]
	if all := 2 + 2*plan.MaxGraphNodes + 2*plan.MaxGraphNodes/16; len(graph.Nodes) != plan.MaxGraphNodes || omitted != all-plan.MaxGraphNodes {
		t.Errorf("got %d nodes, and %v omitted", len(graph.Nodes), graph.Omitted)
	}
	for _, e := range graph.Edges {
		if e.From < 0 || e.From >= len(graph.Nodes) || e.To < 0 || e.To >= len(graph.Nodes) {
			t.Errorf("the edge %v has no node", e)
		}
	}
}
