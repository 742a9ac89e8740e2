package convert

import (
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// NoteKind says what a note is about.
type NoteKind string

const (
	// NoteDifferent means that requests are answered differently, or that a setting has
	// no equivalent.
	NoteDifferent NoteKind = "different"
	// NoteStep means that the user has to do something.
	NoteStep NoteKind = "step"
	// NoteInfo means that nothing is lost.
	NoteInfo NoteKind = "info"
)

// Note is about a part of the configuration that no object expresses as it is.
type Note struct {
	Kind NoteKind `json:"kind"`
	// Line is the line in the file, from 1; 0 for a remote configuration.
	Line int `json:"line,omitempty"`
	// Key is the path of the key, for example ingress[2].service.
	Key string `json:"key"`
	// Text describes the problem.
	Text string `json:"text"`
	// Advice says what to do; empty if nothing needs to be done.
	Advice string `json:"advice,omitempty"`
}

// String returns the key, the text and the advice in one line.
func (n Note) String() string {
	text := n.Key + ": " + n.Text
	if n.Advice != "" {
		text += "; " + n.Advice
	}
	return terminal.Escape(text)
}

// Place returns the name of the input with the line, for example config.yml:12.
func (n Note) Place(input string) string {
	if n.Line == 0 {
		return input
	}
	return fmt.Sprintf("%s:%d", input, n.Line)
}

// note adds a note about a rule, or one of its keys. A note about a difference marks the
// rule as changed.
func (c *converter) note(kind NoteKind, r *Rule, key, text, advice string) {
	path, line := fmt.Sprintf("ingress[%d]", r.Index), r.Line
	if key != "" {
		path += "." + key
		if at, ok := r.lines[key]; ok {
			line = at
		}
		if setting, ok := r.Own[strings.TrimPrefix(key, "originRequest.")]; ok {
			line = setting.Line
		}
	}
	c.notes = append(c.notes, Note{kind, c.input.line(line), path, text, advice})
	c.destinations[r.Index].noted = true
	if kind == NoteDifferent {
		c.routes[r.Index].Changed = true
	}
}
