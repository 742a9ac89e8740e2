package top

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// WriteTable prints the measurement. With color, rows with errors are colored. Rows are
// truncated to the width, unless it is 0.
func (m *Measurement) WriteTable(w io.Writer, color bool, width int) error {
	out := terminal.NewColumns(w, color, width)
	plural := "s"
	if m.Connectors == 1 {
		plural = ""
	}
	terminal.Printf(out, "%s  %d connector%s, %s requests/s in the last %.0f s\n", m.Time.Format(time.TimeOnly), m.Connectors, plural,
		rate(m.RequestsPerSecond), m.Seconds)
	for _, problem := range m.Problems {
		terminal.Printf(out, "%s"+terminal.ProblemMark+"\n", problem)
	}
	names := m.names()
	fmt.Fprint(out, strings.ToUpper(strings.Join(names, "\t"))+"\tREQUESTS/S\tERRORS\tP50\tP99"+terminal.RowMark+"\n")
	for _, row := range m.Rows {
		for _, name := range names {
			terminal.Printf(out, "%s\t", row.cell(name))
		}
		terminal.Printf(out, "%s\t%s\t%s\t%s"+terminal.MarkRow(row.ErrorRatio != nil && *row.ErrorRatio > 0)+"\n",
			rate(row.RequestsPerSecond), percent(row.ErrorRatio), row.P50.text(), row.P99.text())
	}
	switch {
	case m.Omitted > 0:
		terminal.Printf(out, "%d more\n", m.Omitted)
	case len(m.Rows) == 0 && m.Connectors > 0:
		fmt.Fprintln(out, "no requests yet")
	}
	return out.Flush()
}

// names returns the names for the first columns. Other tables need the Gateway only if they
// contain several.
func (m *Measurement) names() []string {
	switch {
	case m.By == ByGateway:
		return []string{string(ByGateway)}
	case slices.ContainsFunc(m.Rows, func(r Row) bool { return r.Gateway != m.Rows[0].Gateway }):
		return []string{string(m.By), string(ByGateway)}
	}
	return []string{string(m.By)}
}

// cell returns the row's text for one leading column.
func (r Row) cell(name string) string {
	if name == string(ByGateway) {
		return r.Gateway
	}
	return r.Name
}

// Lines returns how many lines the table has beside its rows.
func (m *Measurement) Lines() int {
	const header, footer = 2, 1
	return header + len(m.Problems) + footer
}

func rate(perSecond float64) string { return fmt.Sprintf("%.1f", perSecond) }

// percent returns a ratio as text. A ratio above 0 never looks like 0.
func percent(ratio *float64) string {
	switch {
	case ratio == nil:
		return "-"
	case *ratio > 0 && *ratio < 0.001:
		return "<0.1%"
	}
	return fmt.Sprintf("%.1f%%", *ratio*100)
}

// text returns the latency as text.
func (q *Quantile) text() string {
	if q == nil {
		return "-"
	}
	text := fmt.Sprintf("%.0fms", q.Milliseconds)
	switch {
	case q.Milliseconds >= 1000:
		text = fmt.Sprintf("%.1fs", q.Milliseconds/1000)
	case q.Milliseconds < 10:
		text = fmt.Sprintf("%.1fms", q.Milliseconds)
	}
	if q.Above {
		return ">" + text
	}
	return text
}
