package plan

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

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

// Marks at the end of a line. The text cannot contain them, because [terminal.Printf]
// escapes its arguments.
const (
	// rowMark marks a table row.
	rowMark = "\x01"
	// problemMark marks a problem.
	problemMark = "\x02"
)

// markRow returns the mark for a table row.
func markRow(problem bool) string {
	if problem {
		return rowMark + problemMark
	}
	return rowMark
}

// columns writes text with aligned columns in a style. Tabs separate the columns.
type columns struct {
	style Style
	out   *tabwriter.Writer
	text  bytes.Buffer
}

// newColumns returns columns that write to w. The caller must flush them.
func newColumns(w io.Writer, style Style) *columns {
	return &columns{style: style, out: tabwriter.NewWriter(&styler{w: w, color: style.Color}, 0, 4, columnGap, ' ', 0)}
}

// columnGap is how many spaces separate two columns.
const columnGap = 2

// Write implements [io.Writer].
func (c *columns) Write(text []byte) (int, error) { return c.text.Write(text) }

// Flush writes the text. Column widths before and after it are independent.
func (c *columns) Flush() error {
	var rows [][]string
	lines := slices.Collect(strings.Lines(c.text.String()))
	c.text.Reset()
	for _, line := range lines {
		if strings.Contains(line, rowMark) {
			rows = append(rows, strings.Split(withoutMarks(line), "\t"))
		}
	}
	widths := c.style.columnWidths(rows)
	for _, line := range lines {
		if widths != nil && strings.Contains(line, rowMark) {
			text := withoutMarks(line)
			cells := strings.Split(text, "\t")
			for i := range cells {
				cells[i] = truncate(cells[i], widths[i])
			}
			line = strings.Join(cells, "\t") + line[len(text):]
		}
		if _, err := io.WriteString(c.out, line); err != nil {
			return err
		}
	}
	return c.out.Flush()
}

// minColumnWidth is the width to which a column can be truncated.
const minColumnWidth = 6

// columnWidths returns the column widths that fit the terminal, or nil if no column
// must be truncated. It truncates the widest columns.
func (s Style) columnWidths(rows [][]string) []int {
	if s.Width == 0 || s.Wide || len(rows) == 0 {
		return nil
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	excess := columnGap*(len(widths)-1) - s.Width
	for _, width := range widths {
		excess += width
	}
	for ; excess > 0; excess-- {
		widest := slices.Index(widths, slices.Max(widths))
		if widths[widest] <= minColumnWidth {
			break
		}
		widths[widest]--
	}
	return widths
}

// truncate returns text with at most width letters.
func truncate(text string, width int) string {
	letters := []rune(text)
	if len(letters) <= width {
		return text
	}
	return string(letters[:width-1]) + "…"
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

func withoutMarks(line string) string { return strings.TrimRight(line, rowMark+problemMark+"\n") }

// styler writes lines in the colors for their marks, and removes the marks.
type styler struct {
	w     io.Writer
	color bool
	// rest is the beginning of an incomplete line.
	rest []byte
}

// Write implements [io.Writer].
func (s *styler) Write(text []byte) (int, error) {
	s.rest = append(s.rest, text...)
	for {
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			return len(text), nil
		}
		line := string(s.rest[:end])
		s.rest = s.rest[end+1:]
		plain := withoutMarks(line)
		if s.color && strings.Contains(line, problemMark) {
			plain = terminal.Red + plain + terminal.Reset
		}
		if _, err := fmt.Fprintln(s.w, plain); err != nil {
			return 0, err
		}
	}
}
