package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// WriteTable prints the explanation as text. A wide style also prints the entries before the
// answer that do not match.
func (e *Explanation) WriteTable(w io.Writer, style Style) error {
	out := newColumns(w, style)
	writeLines(out, "", e.Introduction())
	if len(e.Traces) > 1 {
		fmt.Fprintln(out)
	}
	for i := range e.Traces {
		if i > 0 {
			fmt.Fprintln(out)
		}
		t := &e.Traces[i]
		terminal.Printf(out, "%s on Gateway %s/%s\n", e.Request, t.Namespace, t.Name)
		for _, step := range t.Steps(e.Request, style) {
			if style.Wide || step.Kind != StepMismatches {
				step.write(out)
			}
		}
	}
	for _, step := range e.Remarks(style) {
		step.write(out)
	}
	return out.Flush()
}

// write prints the step. Its lines are indented below the title.
func (s *Step) write(out *terminal.Columns) {
	indent := ""
	if s.Title != "" {
		fmt.Fprintln(out, s.Title)
		indent = "  "
	}
	if len(s.Rows) > 0 {
		fmt.Fprintln(out, strings.Join(s.Columns, "\t"))
		for _, row := range s.Rows {
			row.write(out)
		}
		flush(out)
	}
	writeLines(out, indent, s.Lines)
}

func (r *StepRow) write(out io.Writer) {
	for i, cell := range r.Cells {
		if i > 0 {
			fmt.Fprint(out, "\t")
		}
		terminal.Printf(out, "%s", cell)
	}
	if r.Problem {
		fmt.Fprint(out, problemMark)
	}
	fmt.Fprintln(out)
}

// writeLines prints the lines, and their details with more indent.
func writeLines(out io.Writer, indent string, lines []Line) {
	for _, line := range lines {
		mark := ""
		if line.Problem {
			mark = problemMark
		}
		terminal.Printf(out, "%s%s"+mark+"\n", indent, line.Text)
		writeLines(out, indent+"  ", line.Details)
	}
}
