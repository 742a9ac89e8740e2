package manifest

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestEveryPatternHasARequirement(t *testing.T) {
	crds, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			addPatterns(used, version.Schema.OpenAPIV3Schema)
		}
	}
	for pattern := range used {
		if requirements[pattern] == "" {
			t.Errorf("the pattern %s has no requirement", pattern)
		}
	}
	for pattern := range requirements {
		if !used[pattern] {
			t.Errorf("no definition has the pattern %s", pattern)
		}
	}
}

// addPatterns adds the patterns in a schema.
func addPatterns(used map[string]bool, props *apiextensionsv1.JSONSchemaProps) {
	if props.Pattern != "" {
		used[props.Pattern] = true
	}
	for _, child := range props.Properties {
		addPatterns(used, &child)
	}
	if props.Items != nil && props.Items.Schema != nil {
		addPatterns(used, props.Items.Schema)
	}
	if props.AdditionalProperties != nil && props.AdditionalProperties.Schema != nil {
		addPatterns(used, props.AdditionalProperties.Schema)
	}
}

func TestErrorsHaveExamplesInsteadOfRegularExpressions(t *testing.T) {
	for field, object := range map[string]string{
		"listener hostname": gateway("{name: a, hostname: A.example.com, port: 80, protocol: HTTP}"),
		"name":              strings.Replace(gateway("{name: a, port: 80, protocol: HTTP}"), "name: ", "name: _", 1),
		"label":             strings.Replace(namespace("a"), "name: a", "name: a, labels: {a: -}", 1),
	} {
		text := strings.Join(parseErrors(t, object), "\n")
		if strings.Contains(text, "[a-z") || strings.Contains(text, "[A-Z") || !strings.Contains(text, "such as") && !strings.Contains(text, "e.g.") {
			t.Errorf("%s: the error has no example: %s", field, text)
		}
	}
}
