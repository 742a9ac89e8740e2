package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printf prints for people. Whoever may write a route chooses what stands in a
// path, so no argument reaches the terminal as it is: an escape sequence could
// clear the screen, and a line break could forge a line. Tabs and line breaks of
// the format are ours.
func printf(out io.Writer, format string, args ...any) {
	shown := make([]any, len(args))
	for i, arg := range args {
		shown[i] = printable{arg}
	}
	fmt.Fprintf(out, format, shown...)
}

// printable is a value that is formatted with its characters made visible.
type printable struct{ value any }

// Format implements fmt.Formatter.
func (v printable) Format(f fmt.State, verb rune) {
	fmt.Fprint(f, escape(fmt.Sprintf(fmt.FormatString(f, verb), v.value)))
}

// escape writes every character that does not print as Go would in a string.
// Backslashes stay alone: paths are full of them.
func escape(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			b.WriteString(strings.Trim(strconv.Quote(text[:size]), `"`))
		}
		text = text[size:]
	}
	return b.String()
}

// escapeLines escapes text of whole lines.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = escape(lines[i])
	}
	return strings.Join(lines, "\n")
}
