package check

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// Style determines how a report is printed.
type Style struct {
	// Color prints failures in color.
	Color bool
	// Width is how many columns the terminal has; 0 if the output is not a terminal.
	// Messages are wrapped to it.
	Width int
}

const (
	// messageColumn is the column in which messages begin.
	messageColumn = 22
	// minMessageWidth is the width below which messages are not wrapped.
	minMessageWidth = 24
)

// WriteTable prints the report as text: a line for each finding, then the result.
func (r *Report) WriteTable(w io.Writer, style Style) error {
	out := &errorWriter{w: terminal.NewLines(w, style.Color)}
	terminal.Printf(out, "%s\n\n", r.URL)
	for _, s := range r.Steps {
		s.write(out, style)
	}
	terminal.Printf(out, "\n%s"+mark(r.Result)+"\n", r.summary())
	return out.err
}

// write prints the step's findings. Only the first one has the step's name.
func (s *Step) write(out io.Writer, style Style) {
	name := s.Name
	for _, f := range s.Findings {
		first := fmt.Sprintf("%-13s%-9s", name, f.Result)
		texts := append(wrapped(f.Message, style), indented(wrapped(f.Advice, style))...)
		for _, text := range texts {
			fmt.Fprintf(out, "%-*s%s"+mark(f.Result)+"\n", messageColumn, first, text)
			first = ""
		}
		name = ""
	}
}

// mark returns the mark for the end of a line.
func mark(r Result) string {
	if r == Failed {
		return terminal.ProblemMark
	}
	return ""
}

// wrapped returns the lines of an escaped text that fit the terminal. It returns none for an
// empty text.
func wrapped(text string, style Style) []string {
	text = terminal.Escape(text)
	limit := style.Width - messageColumn - 2
	if text == "" {
		return nil
	}
	if limit < minMessageWidth {
		return []string{text}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > limit {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	return append(lines, line)
}

func indented(lines []string) []string {
	for n := range lines {
		lines[n] = "  " + lines[n]
	}
	return lines
}

// summary says whether the request works, and at which steps it does not.
func (r *Report) summary() string {
	byResult := map[Result][]string{}
	for _, s := range r.Steps {
		byResult[s.Result] = append(byResult[s.Result], s.Name)
	}
	list := func(result Result) string { return strings.Join(byResult[result], ", ") }
	var parts []string
	if failed := byResult[Failed]; len(failed) > 0 {
		parts = append(parts, "failed: "+list(Failed))
		if len(failed) > 1 {
			parts = append(parts, "begin with "+failed[0])
		}
	} else {
		parts = append(parts, "no step failed")
	}
	if len(byResult[Warning]) > 0 {
		parts = append(parts, "warnings: "+list(Warning))
	}
	if len(byResult[Unknown]) > 0 {
		parts = append(parts, "unknown: "+list(Unknown))
	}
	text := strings.Join(parts, "; ") + "."
	return strings.ToUpper(text[:1]) + text[1:]
}

// errorWriter keeps the first error of a writer.
type errorWriter struct {
	w   io.Writer
	err error
}

// Write implements [io.Writer].
func (e *errorWriter) Write(text []byte) (int, error) {
	if e.err == nil {
		_, e.err = e.w.Write(text)
	}
	return len(text), nil
}
