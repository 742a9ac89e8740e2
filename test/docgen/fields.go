package main

import (
	_ "embed"
	"fmt"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// examplePlaceholder is the line that the example replaces in a head.
const examplePlaceholder = "{{example}}\n"

var (
	//go:embed configuration.head.md
	configurationHead string
	//go:embed configuration.example.yaml
	configurationExample string
	//go:embed tunnel-reference.head.md
	tunnelHead string
	//go:embed access-policy.head.md
	accessPolicyHead string
)

// fieldsPage describes a page that documents one kind's fields.
type fieldsPage struct {
	name, head string
	// definition is the CustomResourceDefinition file, relative to package crd.
	definition string
	// fields are the top-level fields that the page documents.
	fields []string
	// kubernetesTypes maps a field path to its Kubernetes type. The page does not
	// document the fields in these types.
	kubernetesTypes map[string]string
}

var (
	configurationPage = fieldsPage{
		name:       "configuration.md",
		head:       strings.Replace(configurationHead, examplePlaceholder, "```yaml\n"+configurationExample+"```\n", 1),
		definition: "tunnelgateway.dev_tunnelconfigurations.yaml",
		fields:     []string{"spec"},
		kubernetesTypes: map[string]string{
			"spec.connector.affinity":                    "Affinity",
			"spec.connector.resources":                   "ResourceRequirements",
			"spec.connector.envoy.resources":             "ResourceRequirements",
			"spec.connector.tolerations[]":               "Toleration",
			"spec.connector.topologySpreadConstraints[]": "TopologySpreadConstraint",
		},
	}
	accessPolicyPage = fieldsPage{
		name:       "access-policy.md",
		head:       accessPolicyHead,
		definition: "tunnelgateway.dev_accesspolicies.yaml",
		fields:     []string{"spec"},
	}
	tunnelPage = fieldsPage{
		name:            "tunnel-reference.md",
		head:            tunnelHead,
		definition:      "tunnelgateway.dev_tunnels.yaml",
		fields:          []string{"spec", "status"},
		kubernetesTypes: map[string]string{"status.conditions[]": "Condition"},
	}
)

// fieldsPages returns the pages that document custom resource fields. It reads package
// crd's files in the current directory.
func fieldsPages() ([]page, error) {
	var pages []page
	for _, p := range []fieldsPage{configurationPage, accessPolicyPage, tunnelPage} {
		kind, err := readSchema(p.definition)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", p.definition, err)
		}
		tables, err := fieldTables(kind, p.fields, p.kubernetesTypes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.definition, err)
		}
		pages = append(pages, page{p.name, p.head + tables})
	}
	return pages, nil
}

// readSchema returns the schema from a CustomResourceDefinition, which must have exactly
// one version.
func readSchema(file string) (*schema, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("the definition must have one version, got %d", len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema, nil
}
