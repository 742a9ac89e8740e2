package chart

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestNullValueMeansEmptyOrIsRejected sets each value to null, which removes its
// default. If the default is empty, the manifests do not change. Otherwise, the
// chart rejects the value and names it.
func TestNullValueMeansEmptyOrIsRejected(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var byDefault map[string]any
	if err := yaml.Unmarshal(text, &byDefault); err != nil {
		t.Fatal(err)
	}
	want := render(t)
	for path, empty := range valuePaths("", byDefault) {
		out, err := helm(t, "template", release, chartDir, "--namespace", namespace, "--set", path+"=null")
		if err != nil {
			checkMissingProperty(t, path, out, empty)
		} else if empty && out != want {
			t.Errorf("%s=null differs from the empty default (-default +null):\n%s", path, diffLines(want, out))
		} else if !empty && !slices.Contains(nullableValues, path) {
			t.Errorf("the chart accepts %s=null", path)
		}
	}
}

// checkMissingProperty checks that a rejected value has a default that is not empty, and
// that the message names the value.
func checkMissingProperty(t *testing.T, path, message string, empty bool) {
	t.Helper()
	name := path[strings.LastIndex(path, ".")+1:]
	if empty || !strings.Contains(message, "missing property '"+name+"'") {
		t.Errorf("the chart rejects %s=null (default is empty: %v) with:\n%s", path, empty, message)
	}
}

// nullableValues are values that can be null although their defaults are not empty.
var nullableValues = []string{"resources", "metrics.dashboard.labels"}

// valuePaths maps the paths of all values and groups to whether their defaults are empty.
func valuePaths(prefix string, values map[string]any) map[string]bool {
	all := map[string]bool{}
	for name, value := range values {
		group, _ := value.(map[string]any)
		list, _ := value.([]any)
		all[prefix+name] = value == false || value == "" || value == float64(0) || len(group)+len(list) == 0 && (group != nil || list != nil)
		if prefix+name != "podSecurityContext" && prefix+name != "resources" && name != "labels" {
			maps.Copy(all, valuePaths(prefix+name+".", group))
		}
	}
	return all
}

// TestNullInAValuesFileIsRejected checks a group without content, which YAML reads
// as null.
func TestNullInAValuesFileIsRejected(t *testing.T) {
	file := t.TempDir() + "/values.yaml"
	if err := os.WriteFile(file, []byte("metrics:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := helm(t, "template", release, chartDir, "--values", file); err == nil || !strings.Contains(out, "missing property 'metrics'") {
		t.Errorf("got %v:\n%s", err, out)
	}
}
