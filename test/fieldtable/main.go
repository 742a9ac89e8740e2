// Command fieldtable writes docs/configuration.md: the fields of a
// TunnelConfiguration, from the schema of its CustomResourceDefinition. It runs
// from the folder of package crd, through go generate.
//
// Only the page belongs here: its head and its example are written by hand and
// stand beside this file; what a field means is said where its type is.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const (
	definition = "tunnelgateway.dev_tunnelconfigurations.yaml"
	page       = "../../docs/configuration.md"
	// place stands in the head where the example goes.
	place = "{{example}}\n"
)

var (
	//go:embed head.md
	head string
	//go:embed example.yaml
	example string
)

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatalf("fieldtable: %v", err)
	}
}

func run() error {
	schema, err := read(definition)
	if err != nil {
		return fmt.Errorf("read %s: %w", definition, err)
	}
	if strings.Count(head, place) != 1 {
		return errors.New("the head has no place for the example")
	}
	tables, err := newTables("spec", schema.Properties["spec"])
	if err != nil {
		return err
	}
	text := strings.Replace(head, place, "```yaml\n"+example+"```\n", 1) + tables
	return os.WriteFile(page, []byte(text), 0o644)
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
