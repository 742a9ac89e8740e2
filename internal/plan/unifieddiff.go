package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// unifiedDiff returns a unified diff between two configurations in YAML. It is empty if
// and only if both have the same [provider.Configuration.Hash]. from and to are the
// names in the headers.
//
// A push keeps the current configuration's unknown fields, so both sides have the
// unknown fields from have.
func unifiedDiff(have, want provider.Configuration, from, to string) (string, error) {
	if have.Hash() == want.Hash() {
		return "", nil
	}
	want.UnknownFields = have.UnknownFields
	haveText, err := render(have)
	if err != nil {
		return "", err
	}
	wantText, err := render(want)
	if err != nil {
		return "", err
	}
	_, text, _ := strings.Cut(string(diff.Diff(from, haveText, to, wantText)), "\n") // without the line "diff from to"
	return text, nil
}

// render returns the configuration as YAML with sorted keys. It returns nil for a new
// tunnel's empty configuration.
func render(c provider.Configuration) ([]byte, error) {
	known, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("render a configuration: %w", err)
	}
	fields := maps.Clone(c.UnknownFields)
	if err := json.Unmarshal(known, &fields); err != nil { // keeps the unknown fields
		return nil, fmt.Errorf("render a configuration: %w", err)
	}
	if len(c.Ingress) == 0 {
		delete(fields, "ingress")
	}
	if len(fields) == 0 {
		return nil, nil
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("render a configuration: %w", err)
	}
	text, err := yaml.JSONToYAML(terminal.EscapeYAML(whole))
	if err != nil {
		return nil, fmt.Errorf("render a configuration: %w", err)
	}
	return text, nil
}
