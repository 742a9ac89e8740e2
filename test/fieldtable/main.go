// Command fieldtable writes docs/configuration.md and docs/tunnel-reference.md:
// the fields of a TunnelConfiguration and of a Tunnel, from the schemas of their
// CustomResourceDefinitions. It runs from the folder of package crd, through go
// generate.
//
// The heads of the pages and the example are files beside this one. The meaning
// of a field is documented where its type is.
package main

import (
	_ "embed"
	"fmt"
	"log"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// place is the line of a head that the example replaces.
const place = "{{example}}\n"

var (
	//go:embed configuration.head.md
	configurationHead string
	//go:embed example.yaml
	example string
	//go:embed tunnel.head.md
	tunnelHead string
)

// page is a page with tables of fields.
type page struct {
	file, definition string
	head             string
	// objects are the fields of the kind that have tables.
	objects []string
	// kubernetes are the fields whose types are Kubernetes' own, by path, with the
	// name of the type. Their fields have no tables.
	kubernetes map[string]string
}

var pages = []page{
	{
		file: "../../docs/configuration.md", definition: "tunnelgateway.dev_tunnelconfigurations.yaml",
		head:    strings.Replace(configurationHead, place, "```yaml\n"+example+"```\n", 1),
		objects: []string{"spec"},
		kubernetes: map[string]string{
			"spec.connector.affinity":                    "Affinity",
			"spec.connector.resources":                   "ResourceRequirements",
			"spec.connector.tolerations[]":               "Toleration",
			"spec.connector.topologySpreadConstraints[]": "TopologySpreadConstraint",
		},
	},
	{
		file: "../../docs/tunnel-reference.md", definition: "tunnelgateway.dev_tunnels.yaml", head: tunnelHead,
		objects:    []string{"spec", "status"},
		kubernetes: map[string]string{"status.conditions[]": "Condition"},
	},
}

func main() {
	log.SetFlags(0)
	for _, p := range pages {
		if err := p.write(); err != nil {
			log.Fatalf("fieldtable: %s: %v", p.file, err)
		}
	}
}

// write writes the page.
func (p page) write() error {
	schema, err := read(p.definition)
	if err != nil {
		return fmt.Errorf("read %s: %w", p.definition, err)
	}
	tables, err := newTables(schema, p.objects, p.kubernetes)
	if err != nil {
		return err
	}
	return os.WriteFile(p.file, []byte(p.head+tables), 0o644)
}

// read returns the schema of the definition's only version.
func read(file string) (*apiextensionsv1.JSONSchemaProps, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, err
	}
	if len(crd.Spec.Versions) != 1 {
		return nil, fmt.Errorf("has %d versions, and the page is made for one", len(crd.Spec.Versions))
	}
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema, nil
}
