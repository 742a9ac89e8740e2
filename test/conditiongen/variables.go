package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"
	"text/template"
)

//go:embed variables.go.tmpl
var variablesTemplate string

// variables returns the Go file that declares the catalogue's variables.
func (c *catalogue) variables() ([]byte, error) {
	reasons := map[string]bool{}
	for key, r := range c.reasons() {
		if r.SetBy == "" {
			reasons[key.reason] = true
		}
	}
	for _, p := range c.Problems.Rows {
		reasons[p.Reason] = true
	}
	parsed, err := template.New(variablesFile).Funcs(template.FuncMap{
		"short":      short,
		"oneLine":    func(s string) string { return strings.Join(strings.Fields(s), " ") },
		"typePrefix": func(k kindEntry) string { return typePrefix(k.Kind) },
	}).Parse(variablesTemplate)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := parsed.Execute(&b, map[string]any{"Catalogue": c, "Reasons": slices.Sorted(maps.Keys(reasons))}); err != nil {
		return nil, err
	}
	formatted, err := format.Source(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("format the variables: %w", err)
	}
	return formatted, nil
}

// typePrefix returns the prefix that a kind's condition type variables share.
func typePrefix(kind string) string {
	if kind == "Tunnel" {
		return "TypeTunnel"
	}
	return "Type"
}

// short returns a condition type without its domain.
func short(conditionType string) string {
	return conditionType[strings.LastIndex(conditionType, "/")+1:]
}
