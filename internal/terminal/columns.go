package terminal

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Marks at the end of a line. The text cannot contain them, because [Printf]
// escapes its arguments.
const (
	// RowMark marks a table row.
	RowMark = "\x01"
	// ProblemMark marks a problem.
	ProblemMark = "\x02"
)

// MarkRow returns the mark for a table row.
func MarkRow(problem bool) string {
	if problem {
		return RowMark + ProblemMark
	}
	return RowMark
}

// Columns writes text with aligned columns. Tabs separate the columns.
type Columns struct {
	width int
	out   *tabwriter.Writer
	text  bytes.Buffer
}

// NewColumns returns columns that write to w. The caller must flush them. With color, they
// print problems in color. Table rows are truncated to the width, unless it is 0.
func NewColumns(w io.Writer, color bool, width int) *Columns {
	return &Columns{width: width, out: tabwriter.NewWriter(NewLines(w, color), 0, 4, columnGap, ' ', 0)}
}

// columnGap is the number of spaces between two columns.
const columnGap = 2

// Write implements [io.Writer].
func (c *Columns) Write(text []byte) (int, error) { return c.text.Write(text) }

// Flush writes the text. Column widths before and after it are independent.
func (c *Columns) Flush() error {
	var rows [][]string
	lines := slices.Collect(strings.Lines(c.text.String()))
	c.text.Reset()
	for _, line := range lines {
		if strings.Contains(line, RowMark) {
			rows = append(rows, strings.Split(withoutMarks(line), "\t"))
		}
	}
	widths := columnWidths(rows, c.width)
	for _, line := range lines {
		if widths != nil && strings.Contains(line, RowMark) {
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
func columnWidths(rows [][]string, limit int) []int {
	if limit == 0 || len(rows) == 0 {
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
	excess := columnGap*(len(widths)-1) - limit
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

func withoutMarks(line string) string { return strings.TrimRight(line, RowMark+ProblemMark+"\n") }

// Lines writes lines in the colors for their marks, and removes the marks.
type Lines struct {
	w     io.Writer
	color bool
	// rest is the beginning of an incomplete line.
	rest []byte
}

// NewLines returns Lines that write to w. Without color, they only remove the marks.
func NewLines(w io.Writer, color bool) *Lines { return &Lines{w: w, color: color} }

// Write implements [io.Writer].
func (s *Lines) Write(text []byte) (int, error) {
	s.rest = append(s.rest, text...)
	for {
		end := bytes.IndexByte(s.rest, '\n')
		if end < 0 {
			return len(text), nil
		}
		line := string(s.rest[:end])
		s.rest = s.rest[end+1:]
		plain := withoutMarks(line)
		if s.color && strings.Contains(line, ProblemMark) {
			plain = Red + plain + Reset
		}
		if _, err := fmt.Fprintln(s.w, plain); err != nil {
			return 0, err
		}
	}
}
