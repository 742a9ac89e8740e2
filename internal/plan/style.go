package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// Style determines how text is printed.
type Style struct {
	// Color prints problems in color.
	Color bool
	// Width is how many columns the terminal has; 0 if the output is not a terminal.
	// Table rows are truncated to it.
	Width int
	// Wide disables truncating rows and lists of names.
	Wide bool
}

// Marks at the end of a line, for [terminal.Columns].
const (
	rowMark     = terminal.RowMark
	problemMark = terminal.ProblemMark
)

// newColumns returns columns that write to w. The caller must flush them.
func newColumns(w io.Writer, style Style) *terminal.Columns {
	width := style.Width
	if style.Wide {
		width = 0
	}
	return terminal.NewColumns(w, style.Color, width)
}

// abbreviate joins at most three names, and how many others there are. In a wide style
// it joins all names.
func (s Style) abbreviate(names []string) string {
	const limit = 3
	if s.Wide || len(names) <= limit {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
}

// plural returns a kind's plural, unless n is 1.
func plural(kind string, n int) string {
	if n == 1 {
		return kind
	}
	return kind + "s"
}
