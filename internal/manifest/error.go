package manifest

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Place is an object's location.
type Place struct {
	// File is the path that the caller specified, or "stdin".
	File string
	// Document is the document's number in the file, counted from 1; 0 means the whole
	// file.
	Document int
	// Item is the path from the document to an item in a list, for example "items[2]";
	// empty for an object outside a list.
	Item string
}

// String returns the place as errors print it.
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

// Error is one error and its place.
type Error struct {
	Place Place
	// Object is the object's kind, namespace and name, as far as they are known, for
	// example "Gateway default/shared".
	Object string
	// Err is the cause: a [*field.Error] if a single field is invalid.
	Err error
}

// Error returns the place, the object and the cause.
func (e *Error) Error() string {
	if e.Object == "" {
		return fmt.Sprintf("%s: %v", e.Place, e.Err)
	}
	return fmt.Sprintf("%s: %s: %v", e.Place, e.Object, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Field returns the invalid field's path, for example "spec.listeners[0].port", or ""
// if the error does not concern a single field.
func (e *Error) Field() string {
	var invalid *field.Error
	if errors.As(e.Err, &invalid) {
		return invalid.Field
	}
	return ""
}

// Errors are all errors in the manifests, in the order of the documents.
type Errors []*Error

// Error returns one line for each error.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors, so that [errors.As] finds each of them.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}
