// Package progress shows in the terminal which step a command is at.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// Line shows a command's current step. On a terminal it rewrites one line in place;
// elsewhere it prints one line for each slow step.
type Line struct {
	w io.Writer
	// width returns the terminal width in columns, or 0 if w is not a terminal.
	width func() int
}

// New returns a Line that writes to w, usually standard error.
func New(w io.Writer) *Line {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return &Line{w: w, width: func() int { return 0 }}
	}
	return &Line{w: w, width: func() int {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
		return 80
	}}
}

// Step shows the name of a step that takes longer than a second, until done is called. It
// escapes the name, which can contain other users' text. On a terminal, done erases the
// line. Callers must call done exactly once, and must neither start another step nor
// write to w before.
func (l *Line) Step(name string) (done func()) {
	name = terminal.Escape(name)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		l.show(name, stop)
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

// show writes the step every second until stop is closed. If w is not a terminal, it
// writes the step once.
func (l *Line) show(name string, stop <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for seconds := 1; ; seconds++ {
		select {
		case <-stop:
			if seconds > 1 && l.width() > 0 {
				fmt.Fprint(l.w, "\r\x1b[K")
			}
			return
		case <-ticker.C:
		}
		switch width := l.width(); {
		case width > 0:
			fmt.Fprintf(l.w, "\r%s\x1b[K", fit(fmt.Sprintf("%s, %d s", name, seconds), width))
		case seconds == 1:
			fmt.Fprintf(l.w, "%s ...\n", name)
		}
	}
}

// fit truncates a text to one line, because only one line can be rewritten.
func fit(text string, width int) string {
	if letters := []rune(text); len(letters) >= width {
		return string(letters[:width-1])
	}
	return text
}
