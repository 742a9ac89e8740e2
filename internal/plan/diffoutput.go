package plan

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// WriteDiff prints what [Plan.Compare] and [Plan.CompareZones] found as text, optionally with colors.
func (p *Plan) WriteDiff(w io.Writer, color bool) error {
	if len(p.Gateways) == 0 && len(p.terminating) == 0 {
		_, err := fmt.Fprintln(w, terminal.Escape(p.noGatewayMessage(Style{}, p.Mistakes)))
		return err
	}
	out := bufio.NewWriter(w)
	for i := range p.Gateways {
		p.Gateways[i].writeDiff(out, color)
	}
	writeTerminating(out, p.terminating)
	p.writeZones(out, color)
	return out.Flush()
}

// writeTerminating prints a remark about each Gateway that is being deleted.
func writeTerminating(out io.Writer, terminating []types.NamespacedName) {
	for _, name := range terminating {
		terminal.Printf(out, "Gateway %s: The Gateway is being deleted, so the controller does not push its configuration.\n", name)
	}
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
	if !g.Diff.Different && !g.Diff.notCompared {
		g.writeRemark(out, "no difference")
	}
}

// writeRemark prints a line about the Gateway.
func (g *Gateway) writeRemark(out io.Writer, text string) {
	terminal.Printf(out, "Gateway %s/%s: %s\n", g.Namespace, g.Name, text)
}

// writeColored prints a unified diff with a color for each kind of line. The first
// two lines are the headers. Their prefixes cannot identify them, because a removed
// line may have the same prefix.
func writeColored(out io.Writer, unified string) {
	number := 0
	for line := range strings.Lines(unified) {
		color := ""
		switch {
		case number < 2:
			color = terminal.Bold
		case strings.HasPrefix(line, "@@"):
			color = terminal.Cyan
		case strings.HasPrefix(line, "-"):
			color = terminal.Red
		case strings.HasPrefix(line, "+"):
			color = terminal.Green
		}
		number++
		if color != "" {
			line = color + strings.TrimSuffix(line, "\n") + terminal.Reset + "\n"
		}
		fmt.Fprint(out, line)
	}
}
