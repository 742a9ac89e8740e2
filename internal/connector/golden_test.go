package connector_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// update rewrites the golden files: make golden. Read the diff before you
// commit it.
var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden builds the objects for every Input in testdata/NAME.in.yaml, and compares them
// with NAME.golden.yaml. A new case is a new file.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("found no cases, error %v", err)
	}
	for _, input := range inputs {
		name := strings.TrimSuffix(input, ".in.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			got := withoutBootstrap(render(t, read(t, input)))
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

// withoutBootstrap removes the Envoy configuration, which
// TestConfigurationOfEnvoyContainsNoListener compares.
func withoutBootstrap(manifests []byte) []byte {
	return regexp.MustCompile(`(--config-yaml\n *- ).*`).ReplaceAll(manifests, []byte("$1(the bootstrap)"))
}

// TestBuildIsPure also checks that the objects share no memory with the input.
func TestBuildIsPure(t *testing.T) {
	in, original := read(t, "testdata/everything.in.yaml"), read(t, "testdata/everything.in.yaml")
	want := render(t, in)
	for range 20 {
		objects := build(t, in)
		template := objects.Deployment.Spec.Template
		for _, m := range []map[string]string{
			objects.Deployment.Labels, objects.Deployment.Annotations, template.Labels, template.Annotations, template.Spec.NodeSelector,
		} {
			m["changed"] = "yes"
		}
		*template.Spec.TopologySpreadConstraints[0].MaxSkew = 7
		if got := render(t, in); !bytes.Equal(got, want) {
			t.Fatalf("the same input results in different objects (-first +later):\n%s", cmp.Diff(string(want), string(got)))
		}
	}
	if diff := cmp.Diff(original, in); diff != "" {
		t.Errorf("Build changed its input (-before +after):\n%s", diff)
	}
}

// read reads an Input from a file.
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
	gateway := in.Tunnel.Spec.Gateway
	if name := tunnel.ObjectName(types.NamespacedName{Namespace: gateway.Namespace, Name: gateway.Name}); in.Tunnel.Name != name {
		t.Fatalf("%s: the Tunnel of this Gateway must have the name %s", path, name)
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

// render returns the objects as YAML.
func render(t *testing.T, in connector.Input) []byte {
	t.Helper()
	objects := build(t, in)
	var all [][]byte
	for _, kind := range connector.Kinds() {
		object := kind.Select(objects)
		if object == nil {
			continue
		}
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	return bytes.Join(all, []byte("---\n"))
}
