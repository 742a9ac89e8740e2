package manifest

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Place is where an object stands.
type Place struct {
	// File is the path as it was given, or "stdin".
	File string
	// Document counts from 1 within the file; 0 means the file as a whole.
	Document int
	// Item is the path from the document to an item of a list, for instance
	// "items[2]"; empty outside of lists.
	Item string
}

func (p Place) String() string {
	text := p.File
	if p.Document > 0 {
		text += fmt.Sprintf(": document %d", p.Document)
	}
	if p.Item != "" {
		text += ": " + p.Item
	}
	return text
}

// Error is one thing that is wrong, and where.
type Error struct {
	Place Place
	// Object is the kind, namespace and name, as far as they are known, for
	// instance "Gateway default/shared".
	Object string
	// Err says what is wrong: a [*field.Error] when it is one field.
	Err error
}

func (e *Error) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("%s: %v", e.Place, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Place, e.Object, e.Err)
}

// Unwrap returns what is wrong, without the place.
func (e *Error) Unwrap() error { return e.Err }

// Field returns the path of the field that is wrong, for instance
// "spec.listeners[0].port", or nothing when it is not one field.
func (e *Error) Field() string {
	var invalid *field.Error
	if errors.As(e.Err, &invalid) {
		return invalid.Field
	}
	return ""
}

// Errors is everything that is wrong with what was read, in its order.
type Errors []*Error

// Error puts one mistake on a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find each of them.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}
