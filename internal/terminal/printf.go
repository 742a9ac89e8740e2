package terminal

import (
	"fmt"
	"io"
)

// Printf formats text for a terminal. It escapes unprintable characters in its arguments,
// for example in a route's path. The format is not escaped.
func Printf(out io.Writer, format string, args ...any) {
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
	fmt.Fprint(f, Escape(fmt.Sprintf(fmt.FormatString(f, verb), p.value)))
}
