package plan

import (
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// printf formats text for a terminal. It escapes the unprintable characters of its
// arguments, for example of the path of a route. The format is not escaped.
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
	fmt.Fprint(f, terminal.Escape(fmt.Sprintf(fmt.FormatString(f, verb), p.value)))
}

// escapeLines escapes each line of text.
func escapeLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = terminal.Escape(lines[i])
	}
	return strings.Join(lines, "\n")
}
