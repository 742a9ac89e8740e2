package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// unifiedDiff returns the unified diff of two configurations in YAML: "" exactly when
// both have the same [provider.Configuration.Hash]. from and to are their names in
// the headers.
//
// Every write keeps the fields that the controller does not model, so both have
// those of have.
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
	_, unified, _ := strings.Cut(string(diff.Diff(from, haveText, to, wantText)), "\n") // after the line "diff from to"
	return unified, nil
}

// render returns the whole configuration as YAML with sorted keys. That of a new
// tunnel, which has no field, is empty.
func render(c provider.Configuration) ([]byte, error) {
	modelled, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("rendering a configuration: %w", err)
	}
	document := maps.Clone(c.UnknownFields)
	if err := json.Unmarshal(modelled, &document); err != nil { // adds to the map
		return nil, fmt.Errorf("rendering a configuration: %w", err)
	}
	if len(c.Ingress) == 0 {
		delete(document, "ingress")
	}
	if len(document) == 0 {
		return nil, nil
	}
	whole, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("rendering a configuration: %w", err)
	}
	text, err := yaml.JSONToYAML(escapeJSON(whole))
	if err != nil {
		return nil, fmt.Errorf("rendering a configuration: %w", err)
	}
	return text, nil
}

// escapeJSON escapes the characters that a JSON string can hold and that a reader
// of YAML refuses.
func escapeJSON(text []byte) []byte {
	var escaped []byte
	for _, r := range string(text) {
		if r >= 0x7f && r <= 0xffff && !strconv.IsPrint(r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		} else {
			escaped = utf8.AppendRune(escaped, r)
		}
	}
	return escaped
}
