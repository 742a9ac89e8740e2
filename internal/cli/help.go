package cli

import (
	"bytes"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// helpWidth is the width of the help if it is not printed on a terminal.
const helpWidth = 100

// terminalWidth returns the number of columns of the terminal that w writes to, or 0 if w
// is not a terminal.
func terminalWidth(w io.Writer) int {
	file, ok := w.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wrapHelp makes the help of all commands wrap at the width of the terminal that out
// writes to.
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

// wrap breaks lines that are longer than width between words.
func wrap(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		indent := strings.Repeat(" ", hangingIndent(line, width))
		for len(line) > width {
			// A break in the indentation would not make the line shorter.
			end := strings.LastIndexByte(line[:width+1], ' ')
			if end <= len(indent) || strings.TrimSpace(line[:end]) == "" {
				break // the word is longer than the line
			}
			b.WriteString(strings.TrimRight(line[:end], " ") + "\n")
			line = indent + strings.TrimLeft(line[end:], " ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// minTextWidth is the minimum width of a column with text.
const minTextWidth = 24

// hangingIndent returns the indentation of the lines that continue line: the column of
// its text, if at least two spaces separate the text from a name and the column is wide
// enough.
func hangingIndent(line string, width int) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	rest := line[indent:]
	gap := strings.Index(rest, "  ")
	if gap < 0 {
		return indent
	}
	column := len(line) - len(strings.TrimLeft(rest[gap:], " "))
	if column+minTextWidth > width {
		return indent + 2
	}
	return column
}
