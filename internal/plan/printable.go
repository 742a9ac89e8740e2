package plan

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// printf formats text for a terminal. It escapes the unprintable characters of its
// arguments, because the author of a route could otherwise use a path to clear the
// screen with an escape sequence or to forge a line. The format is not escaped.
func printf(out io.Writer, format string, args ...any) {
	escaped := make([]any, len(args))
	for i, arg := range args {
		escaped[i] = printable{arg}
	}
	fmt.Fprintf(out, format, escaped...)
}

// printable is a value that is formatted with escaped unprintable characters.
type printable struct{ value any }

// Format implements [fmt.Formatter].
func (p printable) Format(f fmt.State, verb rune) {
	fmt.Fprint(f, escape(fmt.Sprintf(fmt.FormatString(f, verb), p.value)))
}

// escape replaces each unprintable character by its escape sequence in a Go string.
// It keeps backslashes, which are frequent in paths.
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

// escapeLines escapes each line of text.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = escape(lines[i])
	}
	return strings.Join(lines, "\n")
}
