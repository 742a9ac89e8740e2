package connector_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

// update rewrites the golden files: make golden. Read the diff before you
// commit it.
var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden runs every testdata/NAME.in.yaml, which is an Input, and compares
// the objects with NAME.golden.yaml. A new case is a new file.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(input, ".in.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := written(t, read(t, input))
			golden := name + ".golden.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// TestSameInputSameBytes also finds an input that was changed, and an output that
// shares memory with it.
func TestSameInputSameBytes(t *testing.T) {
	in, untouched := read(t, "testdata/everything.in.yaml"), read(t, "testdata/everything.in.yaml")
	want := written(t, in)
	for range 20 {
		objects := build(t, in)
		objects.Deployment.Labels["changed"] = "yes"
		objects.Deployment.Spec.Template.Spec.NodeSelector["changed"] = "yes"
		objects.Deployment.Spec.Template.Annotations["changed"] = "yes"
		*objects.Deployment.Spec.Template.Spec.TopologySpreadConstraints[0].MaxSkew = 7
		if got := written(t, in); !bytes.Equal(got, want) {
			t.Fatalf("the same input gave something else:\n%s", cmp.Diff(string(want), string(got)))
		}
	}
	if diff := cmp.Diff(untouched, in); diff != "" {
		t.Errorf("the input was changed (-before +after):\n%s", diff)
	}
}

func read(t *testing.T, path string) connector.Input {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var in connector.Input
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		t.Fatal(err)
	}
	return in
}

func build(t *testing.T, in connector.Input) connector.Objects {
	t.Helper()
	objects, err := connector.Build(in)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func written(t *testing.T, in connector.Input) []byte {
	t.Helper()
	var documents [][]byte
	for _, object := range build(t, in).ByKind() {
		if object == nil {
			continue
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, text)
	}
	return bytes.Join(documents, []byte("---\n"))
}
