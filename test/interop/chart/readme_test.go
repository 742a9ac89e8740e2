package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// tableRow is a row in the README's table of values.
type tableRow struct{ name, comment, byDefault string }

// tableRows returns the values in the mapping with their comments and defaults. A mapping
// without a comment is a group of values.
func tableRows(t *testing.T, prefix string, mapping *yaml.Node) []tableRow {
	t.Helper()
	var all []tableRow
	for i := 0; i < len(mapping.Content); i += 2 {
		key, node := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		comment := valueComment(key)
		switch {
		case comment != "":
			all = append(all, tableRow{name, comment, asJSON(t, node)})
		case node.Kind == yaml.MappingNode && len(node.Content) > 0:
			all = append(all, tableRows(t, name+".", node)...)
		default:
			t.Errorf("%s has no comment in values.yaml", name)
		}
	}
	return all
}

// valueComment returns the last paragraph in the comment above the key. Earlier
// paragraphs describe the file.
func valueComment(key *yaml.Node) string {
	paragraphs := strings.Split(key.HeadComment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

func asJSON(t *testing.T, node *yaml.Node) string {
	t.Helper()
	var decoded any
	if err := node.Decode(&decoded); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestREADMEIsUpToDate compares the chart's README with the text generated from
// testdata/README.head.md and values.yaml.
func TestREADMEIsUpToDate(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile("testdata/README.head.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := &strings.Builder{}
	fmt.Fprintf(readme, "%s\n| Value | Default | |\n|---|---|---|\n", head)
	for _, v := range tableRows(t, "", document.Content[0]) {
		fmt.Fprintf(readme, "| `%s` | `%s` | %s |\n", v.name, v.byDefault, strings.ReplaceAll(v.comment, "|", `\|`))
	}
	compareGolden(t, chartDir+"/README.md", readme.String())
}

// TestSchemaMatchesTheValues compares the names in values.schema.json and values.yaml.
func TestSchemaMatchesTheValues(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var byDefault map[string]any
	if err := yaml.Unmarshal(text, &byDefault); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	delete(childMap(schema, "properties"), "global") // defined by Helm
	checkSchema(t, "", schema, byDefault)
}

func checkSchema(t *testing.T, path string, schema, byDefault map[string]any) {
	t.Helper()
	properties := childMap(schema, "properties")
	for name := range properties {
		if _, ok := byDefault[name]; !ok {
			t.Errorf("%s%s is in the schema but not in values.yaml", path, name)
		}
	}
	for name, value := range byDefault {
		property := childMap(properties, name)
		if property == nil {
			t.Errorf("%s%s is not in the schema", path, name)
		}
		// An empty object, such as a selector, has the fields that its user sets.
		if group, ok := value.(map[string]any); ok && len(group) > 0 && property["properties"] != nil {
			checkSchema(t, path+name+".", property, group)
		}
	}
}
