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

// object is a manifest as it was parsed.
type object map[string]any

func (o object) metadata() map[string]any {
	metadata, _ := o["metadata"].(map[string]any)
	return metadata
}

// id names the object among others.
func (o object) id() string {
	namespace, _ := o.metadata()["namespace"].(string)
	return fmt.Sprintf("%s %s/%s", o["kind"], namespace, o.metadata()["name"])
}

// objects parses manifests. A key that is there twice is an error.
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

// withoutHelm takes off what only Helm has a use for.
func (o object) withoutHelm() {
	for _, holder := range []map[string]any{o, child(child(o, "spec"), "template")} {
		metadata := child(holder, "metadata")
		for group, names := range map[string][]string{
			"labels":      {"helm.sh/chart", "app.kubernetes.io/managed-by"},
			"annotations": {"helm.sh/resource-policy"},
		} {
			found := child(metadata, group)
			for _, name := range names {
				delete(found, name)
			}
			if len(found) == 0 {
				delete(metadata, group)
			}
		}
	}
}

func child(of map[string]any, name string) map[string]any {
	found, _ := of[name].(map[string]any)
	return found
}

// defaults are the chart's objects with default values, without what only Helm
// has a use for.
func defaults(t *testing.T) []object {
	t.Helper()
	all := objects(t, render(t))
	for _, o := range all {
		o.withoutHelm()
	}
	return all
}

// folderOf is where config has an object.
func folderOf(o object) string {
	switch o["kind"] {
	case "CustomResourceDefinition":
		return "crd"
	case "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding":
		return "rbac"
	default:
		return "controller"
	}
}

// TestConfigIsWhatTheChartRenders holds the files of config/rbac and
// config/controller against the chart.
func TestConfigIsWhatTheChartRenders(t *testing.T) {
	files := map[string]*bytes.Buffer{}
	for _, o := range defaults(t) {
		folder := folderOf(o)
		if folder == "crd" {
			continue // the chart's is made from the file there
		}
		name := filepath.Join(configDir, folder, strings.ToLower(fmt.Sprint(o["kind"]))+".yaml")
		if files[name] == nil {
			files[name] = bytes.NewBufferString("# Made from charts/tunnel-gateway by `make golden`. Change it there.\n")
		}
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(files[name], "---\n%s", text)
	}
	lists := map[string][]string{}
	for name, text := range files {
		compare(t, name, text.String())
		lists[filepath.Dir(name)] = append(lists[filepath.Dir(name)], filepath.Base(name))
	}
	for dir, names := range lists {
		slices.Sort(names)
		compare(t, filepath.Join(dir, "kustomization.yaml"), "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- "+strings.Join(names, "\n- ")+"\n")
		checkNothingElse(t, dir, names)
	}
}

// checkNothingElse: a file that the chart does not render any more would be
// applied for ever.
func checkNothingElse(t *testing.T, dir string, names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "kustomization.yaml" && !slices.Contains(names, entry.Name()) {
			t.Errorf("%s is not made from the chart", filepath.Join(dir, entry.Name()))
		}
	}
}

// TestKustomize holds what kustomize makes of config/default against the chart.
func TestKustomize(t *testing.T) {
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), configDir+"/default")
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	want, got := byID(t, defaults(t)), byID(t, objects(t, string(text)))
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got))); diff != "" {
		t.Errorf("the objects differ (-chart +kustomize):\n%s", diff)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kustomize gives something else (-chart +kustomize):\n%s", diff)
	}
}

func byID(t *testing.T, all []object) map[string]object {
	t.Helper()
	ids := map[string]object{}
	for _, o := range all {
		if ids[o.id()] != nil {
			t.Errorf("there are two of %s", o.id())
		}
		ids[o.id()] = o
	}
	return ids
}

// The chart cannot reach out of its folder, so it has copies.
func TestChartHasTheCRDs(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(configDir, "crd", "tunnelgateway.dev_*.yaml"))
	if err != nil || len(files) != 2 {
		t.Fatalf("%d CustomResourceDefinitions in config/crd, want 2 (%v)", len(files), err)
	}
	rendered := byID(t, defaults(t))
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
			t.Errorf("the chart's copy of %s differs from config/crd; make generate copies it", filepath.Base(path))
		}
		var source object
		if err := yaml.Unmarshal(want, &source); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(source, rendered[source.id()]); diff != "" {
			t.Errorf("the chart renders another CRD than %s (-config +chart):\n%s", filepath.Base(path), diff)
		}
	}
}

// TestVersionOfTheCRD: the controller refuses a CRD of an older version than its
// own, so the CRD has to be of the release's.
func TestVersionOfTheCRD(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(chartDir, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ AppVersion string }
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	for _, o := range defaults(t) {
		if o["kind"] != "CustomResourceDefinition" {
			continue
		}
		if got, want := child(o.metadata(), "annotations")[v1alpha1.BundleVersionAnnotation], "v"+chart.AppVersion; got != want {
			t.Errorf("the CRD is of version %v, and the chart of %s; set the marker in api/v1alpha1 and make generate", got, want)
		}
	}
}

// No rule grants more than it names.
func TestNoWildcards(t *testing.T) {
	for _, o := range objects(t, render(t)+"\n---\n"+render(t, "--values", "testdata/namespaced.values.yaml")) {
		rules, _ := o["rules"].([]any)
		for _, rule := range rules {
			for field, values := range rule.(map[string]any) {
				if slices.Contains(values.([]any), any("*")) {
					t.Errorf("%s: %s has *", o.id(), field)
				}
			}
		}
	}
}
