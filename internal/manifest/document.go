package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	yamlv2 "go.yaml.in/yaml/v2"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// document is a YAML document in a file, or a sequence of JSON values.
type document struct {
	// line is where text begins in the file, counted from 1.
	line int
	text []byte
}

// split splits a file at its document markers. A line that begins with a marker ends
// the document even in a block scalar (YAML 1.2, c-forbidden).
//
// The reader in k8s.io/apimachinery is not suitable: it drops empty documents, so that
// the document numbers would be wrong, and it drops all text after a "..." marker.
func split(data []byte) []document {
	var documents []document
	current := document{line: 1}
	start, offset, line := 0, 0, 0
	explicit := false // begins with "---", so that it counts even when empty
	end := func() {
		current.text = data[start:offset]
		if explicit || !isPreamble(current.text) {
			documents = append(documents, current)
		}
	}
	for text := range bytes.Lines(data) {
		line++
		begins, ends := isMarker(text, "---"), isMarker(text, "...")
		if begins || ends {
			end()
			current, start, explicit = document{line: line}, offset+len("---"), begins
		}
		offset += len(text)
	}
	end()
	return documents
}

// isMarker reports whether line begins with the marker, followed by white space or the
// line's end.
func isMarker(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(line, []byte(marker))
	return found && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// isPreamble reports whether text contains only blank lines, comments and
// directives, which may precede a document.
func isPreamble(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// values returns the document's content as JSON: one value, or several values if the
// document is a sequence of JSON values.
func (d document) values() ([]json.RawMessage, []error) {
	var jsonErr error
	if utilyaml.IsJSONBuffer(d.text) {
		var values []json.RawMessage
		if values, jsonErr = d.jsonValues(); jsonErr == nil {
			return values, nil
		}
	}
	value, err := yaml.YAMLToJSONStrict(d.text)
	switch {
	case err == nil:
		return []json.RawMessage{value}, nil
	case jsonErr != nil: // the document is neither JSON nor a YAML flow mapping
		return nil, []error{jsonErr}
	}
	return nil, d.yamlErrors()
}

// jsonValues parses the document as a sequence of JSON values.
func (d document) jsonValues() ([]json.RawMessage, error) {
	var values []json.RawMessage
	decoder := json.NewDecoder(bytes.NewReader(d.text))
	for {
		var value json.RawMessage
		err := decoder.Decode(&value)
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, io.EOF):
			return values, nil
		case errors.As(err, &syntax):
			line := d.line + bytes.Count(d.text[:syntax.Offset], []byte("\n"))
			return nil, fmt.Errorf("json: line %d: %w", line, err)
		case err != nil:
			return nil, fmt.Errorf("json: %w", err)
		}
		values = append(values, value)
	}
}

// yamlErrors parses an invalid document again, with blank lines in place of the
// preceding lines in the file, so that the errors have the file's line numbers.
func (d document) yamlErrors() []error {
	text := append(bytes.Repeat([]byte("\n"), d.line-1), d.text...)
	var value any
	err := yamlv2.UnmarshalStrict(text, &value)
	var duplicates *yamlv2.TypeError
	switch {
	case err == nil:
		// The converter's message quotes values, which may belong to a Secret.
		return []error{errors.New("yaml: the document has a key that is not a string, number or boolean, or a number that is not finite")}
	case errors.As(err, &duplicates):
		errs := make([]error, len(duplicates.Errors))
		for i, message := range duplicates.Errors {
			errs[i] = errors.New("yaml: " + message)
		}
		return errs
	}
	return []error{err}
}

// addHint appends a hint to the errors if the document looks like a template.
func (d document) addHint(errs []error) []error {
	if bytes.Contains(d.text, []byte("{{")) {
		errs = append(errs, errors.New("the document looks like a template; render it first"))
	}
	return errs
}

// decodeObject decodes one JSON object. It returns nil for an empty document.
func decodeObject(value json.RawMessage) (map[string]any, []error) {
	var decoded any
	duplicates, err := kjson.UnmarshalStrict(value, &decoded)
	if err != nil {
		return nil, []error{err}
	}
	if len(duplicates) > 0 {
		return nil, fieldErrors(duplicates, func(string) string { return "duplicate field" })
	}
	switch decoded := decoded.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return decoded, nil
	}
	return nil, []error{errors.New("a document must be a mapping with apiVersion, kind and metadata")}
}

// fieldErrors converts a strict decoder's errors to errors about fields. detail returns
// the detail for a field's path.
func fieldErrors(strict []error, detail func(path string) string) []error {
	errs := make([]error, len(strict))
	for i, err := range strict {
		errs[i] = err
		var fieldErr kjson.FieldError
		if errors.As(err, &fieldErr) {
			errs[i] = field.Forbidden(field.NewPath(fieldErr.FieldPath()), detail(fieldErr.FieldPath()))
		}
	}
	return errs
}
