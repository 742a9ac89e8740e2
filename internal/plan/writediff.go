package plan

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Escape sequences of a terminal that knows colours.
const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	cyan  = "\x1b[36m"
	plain = "\x1b[m"
)

// WriteDiff prints the result of [Plan.Compare] for people.
func (p *Plan) WriteDiff(w io.Writer, colour bool) error {
	if len(p.Gateways) == 0 && len(p.terminating) == 0 {
		_, err := fmt.Fprintln(w, p.noGatewayMessage())
		return err
	}
	out := bufio.NewWriter(w)
	for i := range p.Gateways {
		p.Gateways[i].writeDiff(out, colour)
	}
	writeTerminating(out, p.terminating)
	return out.Flush()
}

func writeTerminating(out io.Writer, ending []types.NamespacedName) {
	for _, name := range ending {
		printf(out, "Gateway %s is being deleted, so nothing is pushed.\n", name)
	}
}

func (g *Gateway) writeDiff(out io.Writer, colour bool) {
	say := func(what string) { printf(out, "Gateway %s/%s: %s\n", g.Namespace, g.Name, what) }
	if g.Diff == nil {
		say("not compared")
		return
	}
	for _, note := range g.Diff.Notes {
		say(note)
	}
	switch {
	case g.Diff.Different && colour:
		writeColoured(out, escapeLines(g.Diff.Unified))
	case g.Diff.Different:
		fmt.Fprint(out, escapeLines(g.Diff.Unified))
	case !g.Diff.notCompared:
		say("no difference")
	}
}

// writeColoured gives every line of a unified diff the colour of its kind. A
// line that was taken out can look like a header, so those are known by their
// place.
func writeColoured(out io.Writer, unified string) {
	number := 0
	for line := range strings.Lines(unified) {
		colour := ""
		switch {
		case number < 2:
			colour = bold
		case strings.HasPrefix(line, "@@"):
			colour = cyan
		case strings.HasPrefix(line, "-"):
			colour = red
		case strings.HasPrefix(line, "+"):
			colour = green
		}
		number++
		if colour != "" {
			line = colour + strings.TrimSuffix(line, "\n") + plain + "\n"
		}
		fmt.Fprint(out, line)
	}
}
