package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// UsesEnvoy reports whether Envoy serves a Gateway in the plan.
func (p *Plan) UsesEnvoy() bool {
	return slices.ContainsFunc(p.Gateways, func(g Gateway) bool { return g.DataPlane == v1alpha1.DataPlaneEnvoy })
}

// CompareTables compares the routing tables that Envoy serves with the tables in the
// plan before. A tunnel's configuration, which [Plan.Compare] compares, does not
// contain them.
func (p *Plan) CompareTables(before *Plan) {
	for i := range p.Gateways {
		g := &p.Gateways[i]
		if !g.servesTable() {
			continue
		}
		var old *routing.Table
		j := slices.IndexFunc(before.Gateways, func(b Gateway) bool { return b.Namespace == g.Namespace && b.Name == g.Name })
		if j >= 0 {
			old = before.Gateways[j].result.Table
		}
		if text := tableDiff(old, g.result.Table, fmt.Sprintf("Gateway %s/%s", g.Namespace, g.Name)); text != "" {
			g.ensureDiff()
			g.Diff.Routes, g.Diff.Different = text, true
		}
	}
}

// NoteTablesNotCompared adds a note to the Gateways that Envoy serves, unless the plan
// is for a cluster without manifests, which has nothing to compare.
func (p *Plan) NoteTablesNotCompared(isCluster bool) {
	for i := range p.Gateways {
		if g := &p.Gateways[i]; g.servesTable() && !isCluster {
			g.ensureDiff()
			g.Diff.Notes = append(g.Diff.Notes, "plan does not compare the routes, because it reads no cluster. Add --context to compare the manifests with a cluster.")
		}
	}
}

// servesTable reports whether Envoy serves the Gateway's routing table.
func (g *Gateway) servesTable() bool {
	return g.DataPlane == v1alpha1.DataPlaneEnvoy && g.result.Table != nil
}

// ensureDiff sets the Diff of a Gateway whose tunnel could not be compared.
func (g *Gateway) ensureDiff() {
	if g.Diff == nil {
		g.Diff = &Diff{Notes: []string{"plan did not compare the tunnel configuration."}, notCompared: true}
	}
}

// tableDiff returns a unified diff between two routing tables, with one line for each
// entry. It is empty if they are equal.
func tableDiff(before, after *routing.Table, name string) string {
	from, to := diffHeader("routes of "+name, before == nil, "in the cluster"), diffHeader("routes of "+name, after == nil, "with the manifests")
	_, text, _ := strings.Cut(string(diff.Diff(from, tableText(before), to, tableText(after))), "\n")
	return text
}

// tableText returns the table as text. It is empty for nil.
func tableText(t *routing.Table) []byte {
	if t == nil {
		return nil
	}
	var b strings.Builder
	if t.OriginRequest != nil {
		fmt.Fprintf(&b, "originRequest %s\n", compact(t.OriginRequest))
	}
	if t.Protection != (routing.Protection{}) {
		fmt.Fprintf(&b, "connector.envoy %s\n", compact(t.Protection))
	}
	rows := tableRows(t)
	for i := range rows {
		fmt.Fprintln(&b, terminal.Escape(rows[i].line()))
	}
	return []byte(b.String())
}
