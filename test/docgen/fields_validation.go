package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

// validation returns the rules for a value. It excludes the rules for an object, which
// are above the object's table.
func validation(field, element schema) string {
	var rules []string
	if len(element.Enum) > 0 {
		rules = append(rules, "one of "+enumValues(element.Enum))
	}
	rules = slices.Concat(rules,
		bound("at least ", element.Minimum), bound("at most ", element.Maximum),
		limit("at most %d entries", field.MaxItems), limit("at most %d entries", element.MaxProperties),
		limit("length at least %d", element.MinLength), limit("length at most %d", element.MaxLength))
	switch {
	case len(field.XListMapKeys) > 0:
		rules = append(rules, "unique "+strings.Join(field.XListMapKeys, " and "))
	case field.XListType != nil && *field.XListType == "set":
		rules = append(rules, "unique entries")
	}
	if len(element.Properties) == 0 {
		rules = append(rules, ruleMessages(element)...)
	}
	return strings.Join(rules, "; ")
}

// bound returns the rule for a number's minimum or maximum, if it has one.
func bound(text string, value *float64) []string {
	if value == nil {
		return nil
	}
	return []string{text + strconv.FormatFloat(*value, 'f', -1, 64)}
}

// limit returns the rule for a value's size, if it has one.
func limit(format string, size *int64) []string {
	if size == nil {
		return nil
	}
	return []string{fmt.Sprintf(format, *size)}
}

// enumValues lists the permitted values.
func enumValues(enum []apiextensionsv1.JSON) string {
	texts := make([]string, len(enum))
	for i, value := range enum {
		text := string(value.Raw)
		if text != `""` {
			text = strings.Trim(text, `"`)
		}
		texts[i] = markdown.Code(text)
	}
	return strings.Join(texts, ", ")
}

// ruleMessages returns the messages from the CEL rules for a value, or for a map's
// values.
func ruleMessages(value schema) []string {
	rules := value.XValidations
	if value.AdditionalProperties != nil {
		rules = append(slices.Clone(rules), value.AdditionalProperties.Schema.XValidations...)
	}
	texts := make([]string, len(rules))
	for i, rule := range rules {
		texts[i] = markdown.Escape(rule.Message)
	}
	return texts
}
