package envoy_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// The files are in testdata/identity.golden.yaml. Run make golden to update the file, and
// read the diff.
func TestGoldenSDSFiles(t *testing.T) {
	const golden = "testdata/identity.golden.yaml"
	files, err := envoy.SDSFiles()
	if err != nil {
		t.Fatal(err)
	}
	contents := map[string]any{}
	for name, text := range files {
		var content any
		if err := yaml.Unmarshal(text, &content); err != nil {
			t.Fatalf("%s is not YAML: %v", name, err)
		}
		contents[name] = content
	}
	got, err := yaml.Marshal(contents)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, golden, got)
}
