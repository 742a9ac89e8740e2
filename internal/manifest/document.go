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

// document is one YAML document of a file, or the text of several JSON values.
type document struct {
	// line is the line of the file, from 1, on which text begins.
	line int
	text []byte
}

// split cuts a file at its document markers. A line that begins with one is a
// marker wherever it stands, in a block scalar too (YAML 1.2, c-forbidden).
//
// The reader of k8s.io/apimachinery is not used because it drops empty
// documents, which puts the count off, and what follows a "..." marker.
func split(data []byte) []document {
	var documents []document
	current := document{line: 1}
	start, offset, line := 0, 0, 0
	explicit := false // begun by "---", so that it counts even when empty
	end := func() {
		current.text = data[start:offset]
		if explicit || !isPrefix(current.text) {
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

func isMarker(line []byte, marker string) bool {
	rest, found := bytes.CutPrefix(line, []byte(marker))
	return found && (len(rest) == 0 || bytes.ContainsAny(rest[:1], " \t\r\n"))
}

// isPrefix reports whether text holds only what may stand before a document:
// blank lines, comments and directives.
func isPrefix(text []byte) bool {
	for line := range bytes.Lines(text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' {
			return false
		}
	}
	return true
}

// values returns what the document holds as JSON: one value, or several when
// they are written as JSON one after the other.
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
	case jsonErr != nil: // a flow mapping would have been YAML
		return nil, []error{jsonErr}
	}
	return nil, d.yamlErrors()
}

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

// yamlErrors parses a document that is not valid again, at its place in the
// file, so that the lines in the errors are those of the file.
func (d document) yamlErrors() []error {
	text := append(bytes.Repeat([]byte("\n"), d.line-1), d.text...)
	var value any
	err := yamlv2.UnmarshalStrict(text, &value)
	var duplicates *yamlv2.TypeError
	switch {
	case err == nil:
		// The converter's own message would quote values, perhaps of a Secret.
		return []error{errors.New("yaml: has a key that is not a string, number or boolean, or a number that is not finite")}
	case errors.As(err, &duplicates):
		errs := make([]error, len(duplicates.Errors))
		for i, message := range duplicates.Errors {
			errs[i] = errors.New("yaml: " + message)
		}
		return errs
	}
	return []error{err}
}

// explain says of a text that cannot be parsed what it looks like.
func (d document) explain(errs []error) []error {
	if bytes.Contains(d.text, []byte("{{")) {
		errs = append(errs, errors.New("the document looks like a template; render it first"))
	}
	return errs
}

// decodeObject decodes one value: nil for an empty document.
func decodeObject(value json.RawMessage) (map[string]any, []error) {
	var decoded any
	duplicates, err := kjson.UnmarshalStrict(value, &decoded)
	if err != nil {
		return nil, []error{err}
	}
	if len(duplicates) > 0 {
		return nil, refused(duplicates, "the field is given twice")
	}
	switch decoded := decoded.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return decoded, nil
	}
	return nil, []error{errors.New("a document must be a mapping with apiVersion, kind and metadata")}
}

// refused turns the errors of a strict decoder, which differ in the field only,
// into errors of those fields.
func refused(strict []error, why string) []error {
	errs := make([]error, len(strict))
	for i, err := range strict {
		errs[i] = err
		var at kjson.FieldError
		if errors.As(err, &at) {
			errs[i] = field.Forbidden(field.NewPath(at.FieldPath()), why)
		}
	}
	return errs
}
