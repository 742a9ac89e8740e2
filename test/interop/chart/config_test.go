package chart

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

const configDir = root + "/config"

// object is a parsed manifest.
type object map[string]any

func (o object) metadata() map[string]any {
	metadata, _ := o["metadata"].(map[string]any)
	return metadata
}

// id returns the object's kind, namespace and name.
func (o object) id() string {
	namespace, _ := o.metadata()["namespace"].(string)
	return fmt.Sprintf("%s %s/%s", o["kind"], namespace, o.metadata()["name"])
}

// objects parses manifests. A duplicate key is an error.
func objects(t *testing.T, manifests string) []object {
	t.Helper()
	var all []object
	for document := range strings.SplitSeq("\n"+manifests, "\n---") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, document)
		}
		if len(o) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// withoutHelm removes the labels and annotations that only Helm uses.
func (o object) withoutHelm() {
	for _, parent := range []map[string]any{o, childMap(childMap(o, "spec"), "template")} {
		metadata := childMap(parent, "metadata")
		for group, names := range map[string][]string{
			"labels":      {"helm.sh/chart", "app.kubernetes.io/managed-by"},
			"annotations": {"helm.sh/resource-policy"},
		} {
			found := childMap(metadata, group)
			for _, name := range names {
				delete(found, name)
			}
			if len(found) == 0 {
				delete(metadata, group)
			}
		}
	}
}

// childMap returns the mapping in the field, nil if the field is no mapping.
func childMap(parent map[string]any, field string) map[string]any {
	found, _ := parent[field].(map[string]any)
	return found
}

// defaultObjects returns the objects that the chart renders with default values,
// without the labels and annotations that only Helm uses.
func defaultObjects(t *testing.T) []object {
	t.Helper()
	all := objects(t, render(t))
	for _, o := range all {
		o.withoutHelm()
	}
	return all
}

// configSubdirectory returns the directory in config that contains the object.
func configSubdirectory(o object) string {
	switch o["kind"] {
	case "CustomResourceDefinition":
		return "crd"
	case "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return "rbac"
	default:
		return "controller"
	}
}

// TestConfigFilesMatchTheChart compares the files in config/rbac and
// config/controller with the manifests that the chart renders.
func TestConfigFilesMatchTheChart(t *testing.T) {
	files := map[string]*bytes.Buffer{}
	for _, o := range defaultObjects(t) {
		directory := configSubdirectory(o)
		if directory == "crd" {
			continue // the chart contains a copy of the file in config/crd
		}
		name := filepath.Join(configDir, directory, strings.ToLower(fmt.Sprint(o["kind"]))+".yaml")
		if files[name] == nil {
			files[name] = bytes.NewBufferString("# Generated from charts/tunnel-gateway by `make golden`. Do not edit.\n")
		}
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(files[name], "---\n%s", text)
	}
	lists := map[string][]string{}
	for name, text := range files {
		compareGolden(t, name, text.String())
		lists[filepath.Dir(name)] = append(lists[filepath.Dir(name)], filepath.Base(name))
	}
	for dir, names := range lists {
		slices.Sort(names)
		compareGolden(t, filepath.Join(dir, "kustomization.yaml"), "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- "+strings.Join(names, "\n- ")+"\n")
		checkNoOtherFiles(t, dir, names)
	}
}

// checkNoOtherFiles finds files that the chart no longer renders. Users would
// continue to apply them.
func checkNoOtherFiles(t *testing.T, dir string, names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "kustomization.yaml" && !slices.Contains(names, entry.Name()) {
			t.Errorf("%s is not generated from the chart; delete it", filepath.Join(dir, entry.Name()))
		}
	}
}

// TestKustomizeBaseMatchesTheChart compares the objects that kustomize builds from
// config/default with the objects that the chart renders.
func TestKustomizeBaseMatchesTheChart(t *testing.T) {
	result, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), configDir+"/default")
	if err != nil {
		t.Fatal(err)
	}
	text, err := result.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	want, got := byID(t, defaultObjects(t)), byID(t, objects(t, string(text)))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the names of the objects differ (-chart +kustomize):\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the objects differ (-chart +kustomize):\n%s", diff)
	}
}

func byID(t *testing.T, all []object) map[string]object {
	t.Helper()
	ids := map[string]object{}
	for _, o := range all {
		if ids[o.id()] != nil {
			t.Errorf("%s exists twice", o.id())
		}
		ids[o.id()] = o
	}
	return ids
}

// TestChartContainsTheCRDsOfConfig checks the chart's copies of the CRDs. A chart cannot
// contain files outside its directory.
func TestChartContainsTheCRDsOfConfig(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(configDir, "crd", "tunnelgateway.dev_*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%d CustomResourceDefinitions in config/crd, want 3 (%v)", len(files), err)
	}
	rendered := byID(t, defaultObjects(t))
	for _, path := range files {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(chartDir, "files", filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, got) {
			t.Errorf("the chart's copy of %s differs from config/crd; run make generate to update it", filepath.Base(path))
		}
		var source object
		if err := yaml.Unmarshal(want, &source); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(source, rendered[source.id()]); diff != "" {
			t.Errorf("the rendered CRD differs from %s (-config +chart):\n%s", filepath.Base(path), diff)
		}
	}
}

// TestCRDVersionMatchesTheChart checks the CRD version: the controller rejects CRDs that
// are older than itself.
func TestCRDVersionMatchesTheChart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	for _, o := range defaultObjects(t) {
		if o["kind"] != "CustomResourceDefinition" {
			continue
		}
		if got, want := childMap(o.metadata(), "annotations")[v1alpha1.BundleVersionAnnotation], "v"+chart.AppVersion; got != want {
			t.Errorf("the version of %s is %v, want %s; set the marker in api/v1alpha1 and run make generate", o.id(), got, want)
		}
	}
}

// TestRolesContainNoWildcards checks that each rule names its groups, resources and
// verbs.
func TestRolesContainNoWildcards(t *testing.T) {
	for _, o := range objects(t, render(t)+"\n---\n"+render(t, "--values", "testdata/namespaced.values.yaml")) {
		rules, _ := o["rules"].([]any)
		for _, rule := range rules {
			for field, values := range rule.(map[string]any) {
				if slices.Contains(values.([]any), any("*")) {
					t.Errorf("%s: %s of a rule contains *", o.id(), field)
				}
			}
		}
	}
}
