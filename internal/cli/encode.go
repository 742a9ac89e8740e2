package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// encodeJSON returns the value as JSON without unprintable characters.
func encodeJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return terminal.EscapeJSON(text.Bytes()), nil
}

// encodeYAML returns the value as YAML without unprintable characters.
func encodeYAML(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	// YAML does not permit all characters that JSON permits.
	if text, err = yaml.JSONToYAML(terminal.EscapeYAML(text)); err != nil || !hasUnprintable(string(text)) {
		return text, err
	}
	// The encoder leaves some unprintable characters. Only double-quoted scalars can escape them.
	var root yamlv3.Node
	if err := yamlv3.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	quoteUnprintable(&root)
	var quoted bytes.Buffer
	encoder := yamlv3.NewEncoder(&quoted)
	encoder.SetIndent(2)
	if err := encoder.Encode(&root); err != nil {
		return nil, err
	}
	return terminal.EscapeYAML(quoted.Bytes()), nil
}

// quoteUnprintable double-quotes the scalars with unprintable characters below a node.
func quoteUnprintable(node *yamlv3.Node) {
	if node.Kind == yamlv3.ScalarNode && hasUnprintable(node.Value) {
		node.Style = yamlv3.DoubleQuotedStyle
	}
	for _, child := range node.Content {
		quoteUnprintable(child)
	}
}

// hasUnprintable reports whether text contains an unprintable character other than a line break.
func hasUnprintable(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && !strconv.IsPrint(r) })
}
