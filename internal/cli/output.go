package cli

import (
	"io"
	"os"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// output is a command's standard stream. It escapes unprintable characters, so that no
// text controls the terminal, whichever manifest, file or server it comes from. Messages
// escape line breaks themselves, with [terminal.Printf].
type output struct {
	stream io.Writer
	// sequences are the escape sequences that the command itself prints.
	sequences []string
}

// Write implements [io.Writer].
func (o output) Write(text []byte) (int, error) {
	if _, err := io.WriteString(o.stream, terminal.EscapeOutput(string(text), o.sequences...)); err != nil {
		return 0, err
	}
	return len(text), nil
}

// withColors returns the stream with the command's own colors.
func withColors(w io.Writer) io.Writer {
	return output{stream: streamOf(w), sequences: terminal.Colors()}
}

// streamOf returns the stream that w writes to.
func streamOf(w io.Writer) io.Writer {
	if o, ok := w.(output); ok {
		return o.stream
	}
	return w
}

// fileOf returns the file that w writes to, or nil.
func fileOf(w io.Writer) *os.File {
	file, _ := streamOf(w).(*os.File)
	return file
}

// printError prints an error. Each line begins with the program name.
func printError(w io.Writer, program string, err error) {
	for _, line := range errorLines(err) {
		terminal.Printf(w, "%s: %s\n", program, line)
	}
}

// errorLines returns the text for each error that err joins. A line break in any other
// error may come from a manifest.
func errorLines(err error) []string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []string{err.Error()}
	}
	var texts, lines []string
	for _, err := range joined.Unwrap() {
		texts = append(texts, err.Error())
		lines = append(lines, errorLines(err)...)
	}
	if strings.Join(texts, "\n") != err.Error() {
		return []string{err.Error()}
	}
	return lines
}

// warn prints a warning. It escapes its arguments.
func warn(w io.Writer, format string, args ...any) {
	terminal.Printf(w, "warning: "+format+"\n", args...)
}
