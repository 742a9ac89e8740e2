package plan

import (
	"bufio"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// WriteDiff prints what [Plan.Compare], [Plan.CompareZones] and [Plan.ReadApplications] found
// as text, optionally with colors.
func (p *Plan) WriteDiff(w io.Writer, color bool) error {
	if len(p.Gateways) == 0 && len(p.terminating) == 0 {
		_, err := fmt.Fprintln(w, terminal.Escape(p.noGatewayMessage(Style{}, p.Mistakes)))
		return err
	}
	out := bufio.NewWriter(w)
	for i := range p.Gateways {
		p.Gateways[i].writeDiff(out, color)
	}
	writeLines(out, "", terminatingLines(p.terminating))
	p.writeZones(out, color)
	p.writeAccounts(out, color)
	return out.Flush()
}

// terminatingLines are a remark about each Gateway that is being deleted.
func terminatingLines(terminating []types.NamespacedName) []Line {
	var lines []Line
	for _, name := range terminating {
		lines = append(lines, line("Gateway %s: The Gateway is being deleted, so the controller does not push its configuration.", name))
	}
	return lines
}

func (g *Gateway) writeDiff(out io.Writer, color bool) {
	if g.Diff == nil {
		g.writeRemark(out, "not compared")
		return
	}
	for _, note := range g.Diff.Notes {
		g.writeRemark(out, note)
	}
	for _, text := range []string{g.Diff.Unified, g.Diff.Routes} {
		if color {
			writeColored(out, terminal.EscapeLines(text))
		} else {
			fmt.Fprint(out, terminal.EscapeLines(text))
		}
	}
	if g.Diff.IsEqual() {
		g.writeRemark(out, "no difference")
	}
}

// writeRemark prints a line about the Gateway.
func (g *Gateway) writeRemark(out io.Writer, text string) {
	terminal.Printf(out, "Gateway %s/%s: %s\n", g.Namespace, g.Name, text)
}

// diffColors are the colors of the lines in a unified diff.
var diffColors = map[DiffLineKind]string{
	DiffHeader: terminal.Bold, DiffHunk: terminal.Cyan, DiffRemoved: terminal.Red, DiffAdded: terminal.Green,
}

// writeColored prints a unified diff with a color for each kind of line.
func writeColored(out io.Writer, unified string) {
	for _, line := range DiffLines(unified) {
		text := line.Text
		if color := diffColors[line.Kind]; color != "" {
			text = color + text + terminal.Reset
		}
		fmt.Fprintln(out, text)
	}
}
