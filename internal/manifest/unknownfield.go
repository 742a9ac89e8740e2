package manifest

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/suggest"
)

// unknownField is the detail in the error about a field that the kind does not have.
const unknownField = "unknown field"

// maxFieldDepth limits the search for a field in another part of an object.
const maxFieldDepth = 6

// definition describes the fields of a part of an object.
type definition interface {
	// names returns the fields' names, sorted.
	names() []string
	// child returns the part in the field, or in the items of its list; nil if there is no
	// such field.
	child(name string) definition
	// hasDefault reports whether the field has a default, so that an object has it even if
	// its manifest does not.
	hasDefault(name string) bool
	// isList reports whether the part is in a list.
	isList() bool
}

// describeUnknown returns the detail in the error about an unknown field, with the field
// that the user probably meant. path is the field's path in the content, for example
// spec.rules[1].backend.
func describeUnknown(object definition, content map[string]any, path string) string {
	steps := strings.Split(index.ReplaceAllString(path, ""), ".")
	parent, name := object, steps[len(steps)-1]
	for _, step := range steps[:len(steps)-1] {
		if parent = parent.child(step); parent == nil {
			return unknownField
		}
	}
	present := fieldsBeside(content, path)
	isSet := func(field string) bool { return slices.Contains(present, field) && !parent.hasDefault(field) }
	meant := suggest.Field(name, slices.DeleteFunc(parent.names(), isSet))
	if meant == "" {
		skipped := []string{"status"} // users do not write it
		if len(steps) > 1 {
			skipped = append(skipped, "metadata")
		}
		meant = findField(object, name, skipped)
	}
	return suggest.DidYouMean(unknownField, meant)
}

// fieldsBeside returns the fields in the same part of the content as the field.
func fieldsBeside(content any, path string) []string {
	steps := strings.Split(path, ".")
	for _, step := range steps[:len(steps)-1] {
		name, _, _ := strings.Cut(step, "[")
		part, _ := content.(map[string]any)
		content = part[name]
		for _, text := range index.FindAllString(step, -1) {
			items, _ := content.([]any)
			i, err := strconv.Atoi(text[1 : len(text)-1])
			if err != nil || i >= len(items) {
				return nil
			}
			content = items[i]
		}
	}
	part, _ := content.(map[string]any)
	return slices.Collect(maps.Keys(part))
}

// index matches the index of a list's item in a field's path.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// findField returns the path of the field with the name, for example
// spec.rules[].backendRefs. It returns "" if no part of the object has such a field, or if
// two parts in the same depth have one. It does not search the skipped parts.
func findField(object definition, name string, skipped []string) string {
	type part struct {
		definition
		prefix string
	}
	level := []part{{object, ""}}
	for range maxFieldDepth {
		var found []string
		var next []part
		for _, p := range level {
			for _, field := range p.names() {
				if strings.EqualFold(field, name) {
					found = append(found, p.prefix+field)
				}
				if p.prefix == "" && slices.Contains(skipped, field) {
					continue
				}
				child, prefix := p.child(field), p.prefix+field
				if child.isList() {
					prefix += "[]"
				}
				next = append(next, part{child, prefix + "."})
			}
		}
		if len(found) > 0 {
			return suggest.OnlyOne(found)
		}
		level = next
	}
	return ""
}

// schemaFields are the fields in a schema.
type schemaFields struct {
	*apiextensionsv1.JSONSchemaProps
}

func (s schemaFields) names() []string {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s schemaFields) child(name string) definition {
	child, ok := s.Properties[name]
	switch {
	case !ok:
		return nil
	case name == "metadata" && len(child.Properties) == 0: // a CRD does not describe it
		return typeFields{Type: reflect.TypeFor[metav1.ObjectMeta]()}
	case child.Items != nil:
		return schemaItems{schemaFields{child.Items.Schema}}
	default:
		return schemaFields{&child}
	}
}

func (s schemaFields) hasDefault(name string) bool { return s.Properties[name].Default != nil }

func (schemaFields) isList() bool { return false }

// schemaItems are the fields of a list's items.
type schemaItems struct{ schemaFields }

func (schemaItems) isList() bool { return true }

// typeFields are the fields of a Go type for an object.
type typeFields struct {
	reflect.Type
	list bool
}

// newTypeFields returns the fields of a type, or of the items if it is a list.
func newTypeFields(t reflect.Type) typeFields {
	list := t.Kind() == reflect.Slice
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return typeFields{t, list}
}

// all returns the fields with their JSON names.
func (t typeFields) all() map[string]reflect.Type {
	all := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return all
	}
	for _, field := range reflect.VisibleFields(t.Type) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			all[name] = field.Type
		}
	}
	return all
}

func (t typeFields) names() []string {
	var names []string
	for name := range t.all() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (t typeFields) child(name string) definition {
	if child, ok := t.all()[name]; ok {
		return newTypeFields(child)
	}
	return nil
}

func (typeFields) hasDefault(string) bool { return false }

func (t typeFields) isList() bool { return t.list }
