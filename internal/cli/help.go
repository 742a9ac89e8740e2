package cli

import (
	"bytes"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// helpWidth is the help's width if it is not printed on a terminal.
const helpWidth = 100

// terminalWidth returns how many columns the terminal behind w has, or 0 if w is not a
// terminal.
func terminalWidth(w io.Writer) int {
	file := fileOf(w)
	if file == nil {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wrapHelp makes help for all commands wrap at the terminal width.
func wrapHelp(root *cobra.Command, out io.Writer) {
	printHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, arguments []string) {
		width := terminalWidth(out)
		if width == 0 {
			width = helpWidth
		}
		var text bytes.Buffer
		cmd.SetOut(&text)
		printHelp(cmd, arguments)
		cmd.SetOut(out)
		_, _ = io.WriteString(out, wrap(text.String(), width)) // cobra ignores these errors too
	})
}

// minTextWidth is the minimum width for a text column. If the column is narrower, the
// text begins on the next line.
const minTextWidth = 24

// wrap joins the lines in each paragraph, and breaks the result between words into lines
// that fit the width.
func wrap(text string, width int) string {
	var b strings.Builder
	for _, line := range joinParagraphs(text) {
		column := textColumn(line)
		if column > 0 && column+minTextWidth > width && len(line) > width {
			b.WriteString(strings.TrimRight(line[:column], " ") + "\n")
			line = strings.Repeat(" ", indentation(line)+2) + line[column:]
			column = -1
		}
		if column < 0 {
			column = indentation(line)
		}
		indent := strings.Repeat(" ", column)
		for len(line) > width {
			end := strings.LastIndexByte(line[:width+1], ' ')
			if end <= len(indent) || strings.TrimSpace(line[:end]) == "" {
				break // the first word is longer than the line
			}
			b.WriteString(strings.TrimRight(line[:end], " ") + "\n")
			line = indent + strings.TrimLeft(line[end:], " ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// joinParagraphs returns the lines of text. It joins a line with the previous line if it
// is indented to the column in which the previous text begins. Lines that end with a
// colon are headings.
func joinParagraphs(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		last := len(lines) - 1
		if last >= 0 && line != "" && lines[last] != "" && !strings.HasSuffix(lines[last], ":") && indentation(line) == textColumn(lines[last]) {
			lines[last] += " " + strings.TrimLeft(line, " ")
			continue
		}
		lines = append(lines, line)
	}
	return lines
}

// indentation counts the spaces at the beginning of a line.
func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// textColumn returns the column in which a line's text begins: after a name and at least
// two spaces, or at the beginning of a line without indentation. It returns -1 for an
// indented line without a name, such as an example.
func textColumn(line string) int {
	indent := indentation(line)
	gap := strings.Index(line[indent:], "  ")
	switch {
	case gap >= 0:
		return len(line) - len(strings.TrimLeft(line[indent+gap:], " "))
	case indent == 0 && !strings.HasPrefix(line, "\t"):
		return 0
	}
	return -1
}
