package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// unquoted is a value that YAML does not read as a string, because it has no quotes.
type unquoted struct {
	path string
	line int
	// boolean is the word that YAML reads as a boolean; empty for a number. Errors do
	// not contain the number, because it may belong to a Secret.
	boolean string
}

// explain returns what YAML reads and what to write instead.
func (u unquoted) explain() string {
	if u.boolean == "" {
		return fmt.Sprintf("YAML reads the value on line %d as a number; if the value is correct, write it in quotes", u.line)
	}
	return fmt.Sprintf("YAML reads %s without quotes as a boolean; write %q on line %d", u.boolean, u.boolean, u.line)
}

// booleans are the words that YAML 1.1 reads as booleans.
var booleans = []string{"y", "n", "yes", "no", "on", "off", "true", "false"}

// explainQuotes returns an error that proposes quotes if err is about a value that
// should be a string. Otherwise it returns err. place is the object's place.
func (r *reader) explainQuotes(place Place, err error) error {
	item := place.Item
	matches := matchUnquoted(item, err)
	if matches == nil {
		return err
	}
	whole := Place{File: place.File, Document: place.Document}
	values, cached := r.unquoted[whole]
	if !cached {
		values = r.documents[whole].unquoted()
		r.unquoted[whole] = values
	}
	for _, value := range values {
		if matches(value.path) {
			return &field.Error{
				Type: field.ErrorTypeTypeInvalid, Field: strings.TrimPrefix(strings.TrimPrefix(value.path, item), "."), BadValue: field.OmitValueType{},
				Detail: "must be a string, but " + value.explain(),
			}
		}
	}
	return err
}

// matchUnquoted returns a function that reports whether the value at a path may have
// caused the error, or nil if the error has another cause.
func matchUnquoted(item string, err error) func(path string) bool {
	var invalid *field.Error
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &invalid) && invalid.Type == field.ErrorTypeTypeInvalid && requiresString(invalid.Detail):
		path := strings.TrimPrefix(item+"."+invalid.Field, ".")
		return func(p string) bool { return p == path }
	case invalid != nil && invalid.Field == "metadata":
		// The error about labels and annotations names only the metadata.
		return func(path string) bool {
			rest := strings.TrimPrefix(strings.TrimPrefix(path, item), ".")
			return strings.HasPrefix(rest, "metadata.labels.") || strings.HasPrefix(rest, "metadata.annotations.")
		}
	case errors.As(err, &mismatch) && mismatch.Type.Kind() == reflect.String:
		// The error names the fields, but not the list indexes.
		name := "." + mismatch.Field[strings.LastIndex(mismatch.Field, ".")+1:]
		return func(path string) bool {
			return strings.HasPrefix(path, item) && strings.Contains("."+path+".", name+".")
		}
	}
	return nil
}

// requiresString reports whether an error's detail requires a string. The validators'
// errors have no other indication.
func requiresString(detail string) bool {
	return strings.Contains(detail, "must be a string") || strings.Contains(detail, "must be of type string")
}

// unquoted returns the values in a YAML document that are not strings because they have
// no quotes.
func (d document) unquoted() []unquoted {
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(d.text, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	var found []unquoted
	d.visit(root.Content[0], "", &found)
	return found
}

// visit appends the unquoted values below a node. It does not follow aliases.
func (d document) visit(node *yamlv3.Node, path string, found *[]unquoted) {
	switch node.Kind {
	case yamlv3.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			d.visit(node.Content[i+1], strings.TrimPrefix(path+"."+node.Content[i].Value, "."), found)
		}
	case yamlv3.SequenceNode:
		for i, child := range node.Content {
			d.visit(child, fmt.Sprintf("%s[%d]", path, i), found)
		}
	case yamlv3.ScalarNode:
		value := unquoted{path: path, line: d.line + node.Line - 1}
		switch tag := node.ShortTag(); {
		case node.Style != 0: // the value has quotes, is a block, or has an explicit tag
		case slices.Contains(booleans, strings.ToLower(node.Value)):
			value.boolean = node.Value
			*found = append(*found, value)
		case tag == "!!int" || tag == "!!float":
			*found = append(*found, value)
		}
	default:
	}
}
