package main

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

// schema describes a field.
type schema = apiextensionsv1.JSONSchemaProps

// objectSchema is an object whose fields get a table.
type objectSchema struct {
	path   string
	schema schema
}

// fieldWriter writes the tables. It visits outer objects before inner objects, so
// an object that occurs twice gets the table of its outer occurrence.
type fieldWriter struct {
	text strings.Builder
	// objects are the objects that have a table or wait for their table.
	objects []objectSchema
	// kubernetesTypes are the Kubernetes types by field path, without the fields that the
	// writer has visited.
	kubernetesTypes map[string]string
}

// fieldTables returns a table for each of a kind's fields, and for the objects in them.
// It returns an error if a path of kubernetesTypes does not exist.
func fieldTables(kind *schema, fields []string, kubernetesTypes map[string]string) (string, error) {
	w := &fieldWriter{kubernetesTypes: maps.Clone(kubernetesTypes)}
	for _, name := range fields {
		first := len(w.objects)
		w.objects = append(w.objects, objectSchema{name, kind.Properties[name]})
		for i := first; i < len(w.objects); i++ {
			w.writeObject(w.objects[i])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(w.kubernetesTypes)) {
		return "", fmt.Errorf("the field %s does not exist", path)
	}
	return w.text.String(), nil
}

// writeObject writes an object's table and queues the objects in it.
func (w *fieldWriter) writeObject(o objectSchema) {
	fmt.Fprintf(&w.text, "\n## %s\n\n", markdown.Code(o.path))
	for _, rule := range o.schema.XValidations {
		fmt.Fprintf(&w.text, "Validation error: %s.\n\n", markdown.Escape(rule.Message))
	}
	t := markdown.NewTable("Field", "Type", "Meaning", "Validation")
	for _, name := range slices.Sorted(maps.Keys(o.schema.Properties)) {
		field := o.schema.Properties[name]
		path, element := listElement(o.path+"."+name, field)
		kind := w.typeOf(path, element)
		if field.Type == "array" {
			kind = listOf(kind, element)
		}
		if slices.Contains(o.schema.Required, name) {
			kind += ", required"
		}
		t.Add(markdown.Code(name), kind, markdown.Escape(field.Description), validation(field, element))
	}
	w.text.WriteString(t.String())
}

// listElement returns the path and the schema for a list's elements. It returns its
// arguments if the field is not a list.
func listElement(path string, field schema) (string, schema) {
	if field.Type == "array" {
		return path + "[]", *field.Items.Schema
	}
	return path, field
}

// listOf returns the type for a list whose elements have the given type.
func listOf(kind string, element schema) string {
	if kind == element.Type {
		kind += "s"
	}
	return "list of " + kind
}

// typeOf returns the type that a field or a list's elements have. An object that this
// project defines gets its own table, unless an equal object already has a table.
func (w *fieldWriter) typeOf(path string, element schema) string {
	if name, found := w.kubernetesTypes[path]; found {
		delete(w.kubernetesTypes, path)
		return name + " (Kubernetes)"
	}
	switch {
	case element.AdditionalProperties != nil:
		return "map of " + element.AdditionalProperties.Schema.Type + "s"
	case element.XIntOrString:
		return "integer or string"
	case len(element.Properties) == 0:
		return element.Type
	}
	for _, o := range w.objects {
		if reflect.DeepEqual(o.schema.Properties, element.Properties) {
			return markdown.Link(markdown.Code(o.path))
		}
	}
	w.objects = append(w.objects, objectSchema{path, element})
	return markdown.Link(markdown.Code(path))
}
