package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// schema is the schema of one field.
type schema = apiextensionsv1.JSONSchemaProps

// section is the table of one object's fields.
type section struct {
	path   string
	schema schema
}

// tables gathers the sections. Outer objects come before inner ones, so that the
// table of an object that occurs twice is that of the outer occurrence.
type tables struct {
	text     strings.Builder
	sections []section
	// kubernetes are the fields with types of Kubernetes that were not found yet.
	kubernetes map[string]string
}

// newTables returns the tables of the objects of a kind and of the objects in
// them. kubernetes are the fields whose types are Kubernetes' own.
func newTables(kind *schema, objects []string, kubernetes map[string]string) (string, error) {
	t := &tables{kubernetes: maps.Clone(kubernetes)}
	for _, name := range objects {
		first := len(t.sections)
		t.sections = append(t.sections, section{name, kind.Properties[name]})
		for i := first; i < len(t.sections); i++ {
			t.object(t.sections[i])
		}
	}
	for path := range t.kubernetes {
		return "", fmt.Errorf("there is no field %s", path)
	}
	return t.text.String(), nil
}

// object writes the table of an object's fields, and queues the objects among
// them.
func (t *tables) object(s section) {
	fmt.Fprintf(&t.text, "\n## `%s`\n\n", s.path)
	for _, rule := range s.schema.XValidations {
		fmt.Fprintf(&t.text, "Refused with: %s.\n\n", escape.Replace(rule.Message))
	}
	t.text.WriteString("| Field | Type | Meaning | Validation |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.schema.Properties)) {
		field := s.schema.Properties[name]
		path, element := step(s.path+"."+name, field)
		kind := t.kind(path, element)
		if field.Type == "array" {
			kind = "list of " + kind
		}
		if slices.Contains(s.schema.Required, name) {
			kind += ", required"
		}
		fmt.Fprintf(&t.text, "| `%s` | %s | %s | %s |\n", name, kind, prose(field.Description), validation(field, element))
	}
}

// step goes from a list to its items.
func step(path string, field schema) (string, schema) {
	if field.Type == "array" {
		return path + "[]", *field.Items.Schema
	}
	return path, field
}

// kind returns the type of a field or of a list's items. An object of this
// project gets a table of its own, unless there is an equal one.
func (t *tables) kind(path string, element schema) string {
	if name, found := t.kubernetes[path]; found {
		delete(t.kubernetes, path)
		return "Kubernetes' " + name
	}
	switch {
	case element.AdditionalProperties != nil:
		return "map of " + element.AdditionalProperties.Schema.Type + "s"
	case element.XIntOrString:
		return "integer or string"
	case len(element.Properties) == 0:
		return element.Type
	}
	for _, s := range t.sections {
		if reflect.DeepEqual(s.schema.Properties, element.Properties) {
			return link(s.path)
		}
	}
	t.sections = append(t.sections, section{path, element})
	return link(path)
}

// link returns a link to a section. Its anchor is made as GitHub does.
func link(path string) string {
	anchor := strings.NewReplacer(".", "", "[", "", "]", "").Replace(strings.ToLower(path))
	return fmt.Sprintf("[`%s`](#%s)", path, anchor)
}

// validation returns the rules for a value. The rules of objects are above their
// tables.
func validation(field, element schema) string {
	var parts []string
	limit := func(text string, bound *int64) {
		if bound != nil {
			parts = append(parts, fmt.Sprintf(text, *bound))
		}
	}
	number := func(text string, bound *float64) {
		if bound != nil {
			parts = append(parts, text+strconv.FormatFloat(*bound, 'f', -1, 64))
		}
	}
	if len(element.Enum) > 0 {
		parts = append(parts, "one of "+values(element.Enum))
	}
	number("at least ", element.Minimum)
	number("at most ", element.Maximum)
	limit("at most %d entries", field.MaxItems)
	limit("at most %d entries", element.MaxProperties)
	limit("length at least %d", element.MinLength)
	limit("length at most %d", element.MaxLength)
	switch {
	case len(field.XListMapKeys) > 0:
		parts = append(parts, "one entry for each "+strings.Join(field.XListMapKeys, " and "))
	case field.XListType != nil && *field.XListType == "set":
		parts = append(parts, "no entry twice")
	}
	if len(element.Properties) == 0 {
		parts = append(parts, messages(element)...)
	}
	return strings.Join(parts, "; ")
}

// values lists the values that a field can have.
func values(enum []apiextensionsv1.JSON) string {
	texts := make([]string, len(enum))
	for i, value := range enum {
		text := string(value.Raw)
		if text != `""` {
			text = strings.Trim(text, `"`)
		}
		texts[i] = "`" + text + "`"
	}
	return strings.Join(texts, ", ")
}

// messages returns what the rules of a value, or of a map's values, say.
func messages(value schema) []string {
	rules := value.XValidations
	if value.AdditionalProperties != nil {
		rules = append(slices.Clone(rules), value.AdditionalProperties.Schema.XValidations...)
	}
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = escape.Replace(rule.Message)
	}
	return texts
}

var escape = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `*`, `\*`, `_`, `\_`, `<`, `\<`)

// prose puts a description on one line of a table.
func prose(description string) string {
	return escape.Replace(strings.Join(strings.Fields(description), " "))
}
