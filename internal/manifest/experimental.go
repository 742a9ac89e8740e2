package manifest

import (
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// experimentalField is the detail in the error about a route field that the standard channel
// does not have.
const experimentalField = "only the CRDs of the Gateway API's experimental channel have this field; if they are installed, use --experimental-crds"

// unknownDetail returns the detail in the error about a field that the kind with the
// definition does not have. content is the object.
func unknownDetail(kind string, definition *apiextensionsv1.JSONSchemaProps, content map[string]any, path string) string {
	if schema, ok := experimentalSchemas()[kind]; ok && hasField(schema, path) {
		return experimentalField
	}
	return describeUnknown(schemaFields{definition}, content, path)
}

// experimentalSchemas returns the route schemas in the experimental channel, by kind.
var experimentalSchemas = sync.OnceValue(func() map[string]*apiextensionsv1.JSONSchemaProps {
	crds, err := experimentalCRDs.all()
	if err != nil {
		panic(err) // the build is broken
	}
	schemas := map[string]*apiextensionsv1.JSONSchemaProps{}
	for _, crd := range crds {
		for _, version := range crd.Spec.Versions {
			if version.Storage {
				schemas[crd.Spec.Names.Kind] = version.Schema.OpenAPIV3Schema
			}
		}
	}
	return schemas
})

// hasField reports whether the schema has the field, for example spec.rules[1].retry.
func hasField(s *apiextensionsv1.JSONSchemaProps, path string) bool {
	for _, name := range strings.Split(index.ReplaceAllString(path, ""), ".") {
		if s.Items != nil {
			s = s.Items.Schema
		}
		child, ok := s.Properties[name]
		if !ok {
			return false
		}
		s = &child
	}
	return true
}
