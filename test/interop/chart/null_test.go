package chart

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestNull sets every value to null, which takes its default away. The chart renders
// what an empty value gives, or refuses it by its name.
func TestNull(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var byDefault map[string]any
	if err := yaml.Unmarshal(text, &byDefault); err != nil {
		t.Fatal(err)
	}
	want := render(t)
	for path, empty := range paths("", byDefault) {
		out, err := helm(t, "template", release, chartDir, "--namespace", namespace, "--set", path+"=null")
		if err != nil {
			checkMissing(t, path, out, empty)
		} else if empty && out != want {
			t.Errorf("%s=null is not as if it were empty:\n%s", path, diffLines(want, out))
		} else if !empty && !slices.Contains(mayBeNone, path) {
			t.Errorf("%s=null is rendered", path)
		}
	}
}

// checkMissing wants a value that is not empty by default to be refused by its
// name.
func checkMissing(t *testing.T, path, message string, empty bool) {
	t.Helper()
	name := path[strings.LastIndex(path, ".")+1:]
	if empty || !strings.Contains(message, "missing property '"+name+"'") {
		t.Errorf("%s=null is refused, empty by default %v:\n%s", path, empty, message)
	}
}

// mayBeNone has a default, and there may be none of it.
var mayBeNone = []string{"resources", "metrics.dashboard.labels"}

// paths returns the names of all values and of their groups, and whether they are
// empty by default.
func paths(prefix string, values map[string]any) map[string]bool {
	all := map[string]bool{}
	for name, value := range values {
		group, _ := value.(map[string]any)
		list, _ := value.([]any)
		all[prefix+name] = value == false || value == "" || value == float64(0) || len(group)+len(list) == 0 && (group != nil || list != nil)
		if prefix+name != "podSecurityContext" && prefix+name != "resources" && name != "labels" {
			maps.Copy(all, paths(prefix+name+".", group))
		}
	}
	return all
}

// A null is refused as such, too, where it comes with the values of a file.
func TestNullOfAFile(t *testing.T) {
	file := t.TempDir() + "/values.yaml"
	if err := os.WriteFile(file, []byte("metrics:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := helm(t, "template", release, chartDir, "--values", file); err == nil || !strings.Contains(out, "missing property 'metrics'") {
		t.Errorf("got %v:\n%s", err, out)
	}
}
