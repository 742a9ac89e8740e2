package chart

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// value is a row of the README's table.
type value struct{ name, comment, byDefault string }

// values reads the values that can be set, with the comments above them. A
// mapping without a comment is a group.
func values(t *testing.T, prefix string, mapping *yaml.Node) []value {
	t.Helper()
	var all []value
	for i := 0; i < len(mapping.Content); i += 2 {
		key, of := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		comment := comment(key)
		switch {
		case comment != "":
			all = append(all, value{name, comment, asJSON(t, of)})
		case of.Kind == yaml.MappingNode && len(of.Content) > 0:
			all = append(all, values(t, name+".", of)...)
		default:
			t.Errorf("%s has no comment in values.yaml", name)
		}
	}
	return all
}

// comment is the last paragraph above the key: what stands before is about the
// file.
func comment(key *yaml.Node) string {
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

// TestREADME holds the chart's README against testdata/README.head.md and
// values.yaml.
func TestREADME(t *testing.T) {
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
	for _, v := range values(t, "", document.Content[0]) {
		fmt.Fprintf(readme, "| `%s` | `%s` | %s |\n", v.name, v.byDefault, strings.ReplaceAll(v.comment, "|", `\|`))
	}
	compare(t, chartDir+"/README.md", readme.String())
}

// Every value is in the schema, and the schema has no other.
func TestSchemaHasTheValues(t *testing.T) {
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
	delete(child(schema, "properties"), "global") // Helm's own
	checkSchema(t, "", schema, byDefault)
}

func checkSchema(t *testing.T, path string, schema, byDefault map[string]any) {
	t.Helper()
	properties := child(schema, "properties")
	for name := range properties {
		if _, ok := byDefault[name]; !ok {
			t.Errorf("%s%s is in the schema and not in values.yaml", path, name)
		}
	}
	for name, value := range byDefault {
		of := child(properties, name)
		if of == nil {
			t.Errorf("%s%s is not in the schema", path, name)
		}
		if group, ok := value.(map[string]any); ok && of["properties"] != nil {
			checkSchema(t, path+name+".", of, group)
		}
	}
}
