// Package progress tells a waiting person what a command is busy with. It
// belongs here how that is shown, not what there is to do.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// Line is where steps are told: one line that is rewritten in place on a
// terminal, and a line for each slow step elsewhere.
type Line struct {
	w io.Writer
	// width is the terminal's, in columns; 0 when w is none.
	width func() int
}

// New returns a Line on w, usually the standard error.
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

// Step tells of a step that takes longer than a second, until done is called,
// which has to be once. On a terminal nothing is left of it then. Steps do not
// overlap, and nothing else is written to the same place between the two.
func (l *Line) Step(name string) (done func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		l.show(name, end)
	}()
	return func() {
		close(end)
		<-ended
	}
}

// show writes every second until the step ends; where it cannot take back what
// it wrote, once.
func (l *Line) show(name string, end <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for seconds := 1; ; seconds++ {
		select {
		case <-end:
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

// fit cuts a text so that it does not wrap: only one line can be rewritten.
func fit(text string, width int) string {
	if letters := []rune(text); len(letters) >= width {
		return string(letters[:width-1])
	}
	return text
}
