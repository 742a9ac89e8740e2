package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Screen shows a text on a terminal and replaces it in place. It keeps the lines above,
// such as the command line.
type Screen struct {
	w io.Writer
	// lines is the number of lines of the current text on the terminal.
	lines int
}

// NewScreen returns a Screen that writes to w, which must be a terminal.
func NewScreen(w io.Writer) *Screen { return &Screen{w: w} }

// Show replaces the current text. It escapes all unprintable characters except line breaks
// and colors. width is the number of columns on the terminal. The text must not have more
// lines than the terminal.
func (s *Screen) Show(text string, width int) error {
	text = EscapeOutput(text, Colors()...)
	var b strings.Builder
	if s.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.lines) // moves the cursor up
	}
	// The terminal shows nothing between the two steps if it gets them together.
	b.WriteString("\r\x1b[J" + text) // erases everything below
	s.lines = linesOf(text, width)
	_, err := io.WriteString(s.w, b.String())
	return err
}

// linesOf counts a text's lines. A terminal continues a line that is too long on the next.
func linesOf(text string, width int) int {
	for _, color := range Colors() {
		text = strings.ReplaceAll(text, color, "")
	}
	count := 0
	for line := range strings.Lines(text) {
		count++
		if letters := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && letters > width {
			count += (letters - 1) / width
		}
	}
	return count
}
