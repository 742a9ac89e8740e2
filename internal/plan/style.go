package plan

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Style determines how text is printed.
type Style struct {
	// Color prints problems in color.
	Color bool
	// Width is the number of columns of the terminal; 0 if the output is not a terminal.
	// The rows of tables are truncated to it.
	Width int
	// Wide disables truncation: of rows, and of lists of names.
	Wide bool
}

// Marks at the end of a line. The text cannot contain them, because [printf] escapes its
// arguments.
const (
	// rowMark marks a row of a table.
	rowMark = "\x01"
	// problemMark marks a problem.
	problemMark = "\x02"
)

// newTable returns a writer of aligned columns in a style. The caller must flush it.
func newTable(w io.Writer, style Style) *tabwriter.Writer {
	return tabwriter.NewWriter(&styler{w: w, style: style}, 0, 4, 2, ' ', 0)
}

// styler writes lines in a style and removes their marks.
type styler struct {
	w     io.Writer
	style Style
	// rest is the beginning of a line that is not complete.
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
		if _, err := fmt.Fprintln(s.w, s.styled(line)); err != nil {
			return 0, err
		}
	}
}

// styled returns a line as it is printed.
func (s *styler) styled(line string) string {
	text := strings.TrimRight(line, rowMark+problemMark)
	marks := line[len(text):]
	if letters := []rune(text); strings.Contains(marks, rowMark) && s.style.Width > 0 && !s.style.Wide && len(letters) > s.style.Width {
		text = string(letters[:s.style.Width-1]) + "…"
	}
	if s.style.Color && strings.Contains(marks, problemMark) {
		text = red + text + reset
	}
	return text
}
