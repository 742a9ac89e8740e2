package convert_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/convert"
)

// Every key of a configuration has an effect on the objects or on the notes: without the
// key, they are different.
func TestNoKeyIsDroppedWithoutANote(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal("no configurations in testdata", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		original := parse(t, string(text))
		want, notes := output(t, original), convert.Convert(original, options).Notes
		var root yaml.Node
		if err := yaml.Unmarshal(text, &root); err != nil {
			t.Fatal(err)
		}
		eachKey(&root, "", func(path string) {
			changed, err := yaml.Marshal(&root)
			if err != nil {
				t.Fatal(err)
			}
			input, err := convert.Parse("config.yml", changed)
			if err == nil && output(t, input) == want && !isNoted(notes, path) {
				t.Errorf("%s: %s has no effect and no note", file, path)
			}
		})
	}
}

// isNoted reports whether a note is about the list or mapping that a key is in, for example
// the access block.
func isNoted(notes []convert.Note, path string) bool {
	path = strings.TrimPrefix(path, "[0].")
	return slices.ContainsFunc(notes, func(n convert.Note) bool {
		inside := strings.TrimPrefix(path, n.Key)
		return strings.HasSuffix(n.Key, ".access") && strings.HasPrefix(inside, ".") || strings.HasSuffix(n.Key, ".ipRules") && strings.HasPrefix(inside, "[")
	})
}

// eachKey calls visit once for each key, while the key is missing.
func eachKey(n *yaml.Node, path string, visit func(path string)) {
	content := n.Content
	for i := range content {
		if n.Kind != yaml.MappingNode {
			eachKey(content[i], fmt.Sprintf("%s[%d]", path, i), visit)
			continue
		}
		if i%2 == 1 {
			key := path + "." + content[i-1].Value
			n.Content = append(append([]*yaml.Node{}, content[:i-1]...), content[i+1:]...)
			visit(key)
			n.Content = content
			eachKey(content[i], key, visit)
		}
	}
}

// lineNumbers are not what a key's effect is about.
var lineNumbers = regexp.MustCompile(`config\.yml:\d+|\(line \d+\)`)

// output returns the objects and the notes without line numbers.
func output(t *testing.T, input *convert.Configuration) string {
	t.Helper()
	result := convert.Convert(input, options)
	var out strings.Builder
	if err := result.WriteYAML(&out, "config.yml"); err != nil {
		t.Fatal(err)
	}
	for _, n := range result.Notes {
		out.WriteString(n.String() + "\n")
	}
	return lineNumbers.ReplaceAllString(out.String(), "")
}
