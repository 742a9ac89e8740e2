package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// parse parses a valid file.
func parse(t *testing.T, text string) *Set {
	t.Helper()
	set, err := Parse("in.yaml", []byte(text), Options{})
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return set
}

// parseOne parses a valid file with one object of type T.
func parseOne[T client.Object](t *testing.T, text string) T {
	t.Helper()
	set := parse(t, text)
	if len(set.Objects) != 1 {
		t.Fatalf("got %d objects, want 1", len(set.Objects))
	}
	object, ok := set.Objects[0].(T)
	if !ok {
		t.Fatalf("got a %T, want a %T", set.Objects[0], object)
	}
	return object
}

// parseErrors returns the lines in the error from parsing an invalid file.
func parseErrors(t *testing.T, text string) []string {
	t.Helper()
	set, err := Parse("in.yaml", []byte(text), Options{})
	if err == nil {
		t.Fatal("Parse returned no error")
	}
	if set != nil {
		t.Error("Parse returned a Set and an error")
	}
	return strings.Split(err.Error(), "\n")
}

// names returns the objects as "Kind namespace/name".
func names(set *Set) []string {
	var names []string
	for _, object := range set.Objects {
		id := objectID{object.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)}
		names = append(names, id.String())
	}
	return names
}

func namespace(name string) string {
	return "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + "}}\n"
}

func TestSetKeepsObjectOrderAndCountsSkippedKinds(t *testing.T) {
	set := parse(t, `
apiVersion: v1
kind: Secret
metadata: {name: z}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
---
apiVersion: batch/v1
kind: Job
metadata: {name: web}
---
apiVersion: v1
kind: Service
metadata: {name: a, namespace: team}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: other}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: not-read}
`)
	if diff := cmp.Diff([]string{"Secret default/z", "Service team/a"}, names(set)); diff != "" {
		t.Error(diff)
	}
	want := []Skipped{
		{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Count: 2},
		{GroupKind: schema.GroupKind{Group: "batch", Kind: "Job"}, Count: 1},
		{GroupKind: schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "TLSRoute"}, Count: 1},
	}
	if diff := cmp.Diff(want, set.Skipped); diff != "" {
		t.Error(diff)
	}
}

func TestNamespaceOptionAppliesToObjectsWithoutANamespace(t *testing.T) {
	text := "{apiVersion: v1, kind: Secret, metadata: {name: a}}\n---\n" +
		"{apiVersion: v1, kind: Secret, metadata: {name: b, namespace: ''}}\n---\n" +
		"{apiVersion: v1, kind: Secret, metadata: {name: c, namespace: own}}\n---\n" +
		"{apiVersion: v1, kind: Namespace, metadata: {name: d, namespace: dropped}}\n---\n" +
		"{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, " +
		"metadata: {name: e, namespace: dropped}, spec: {controllerName: a.example/b}}\n"
	set, err := Parse("in.yaml", []byte(text), Options{Namespace: "given"})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Secret given/a", "Secret given/b", "Secret own/c", "Namespace d", "GatewayClass e"}
	if diff := cmp.Diff(want, names(set)); diff != "" {
		t.Error(diff)
	}
}

func TestReadReadsFilesDirectoriesAndStandardInput(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"dir/b.yaml": namespace("b"), "dir/a.yml": namespace("a"), "dir/c.json": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"c"}}`,
		"dir/notes.txt": "not: a manifest", "dir/below/d.yaml": namespace("d"), "file": namespace("e"),
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths := []string{filepath.Join(dir, "file"), filepath.Join(dir, "dir"), "-"}
	set, err := Read(paths, Options{Stdin: strings.NewReader(namespace("f"))})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Namespace e", "Namespace a", "Namespace b", "Namespace c", "Namespace f"}
	if diff := cmp.Diff(want, names(set)); diff != "" {
		t.Error(diff)
	}
}

func TestReadReportsErrorsOfAllPaths(t *testing.T) {
	empty, absent := t.TempDir(), filepath.Join(t.TempDir(), "absent.yaml")
	_, err := Read([]string{absent, "-", empty}, Options{Stdin: strings.NewReader("a: [")})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("errors.Is(%v, fs.ErrNotExist) = false", err)
	}
	var all Errors
	if !errors.As(err, &all) || len(all) != 3 {
		t.Fatalf("got %v, want three errors", err)
	}
	if got, want := all[0].Error(), absent+": no such file or directory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := all[1].Place, (Place{File: "stdin", Document: 1}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, want := all[2].Error(), empty+": the directory contains no *.yaml, *.yml or *.json file"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDuplicateObjectErrorNamesBothPlaces(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.yaml")
	text := namespace("a") + "---\n{apiVersion: v1, kind: List, items: [" + strings.TrimSpace(namespace("b")) + "]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Read([]string{file, "-"}, Options{Stdin: strings.NewReader(namespace("b"))})
	want := "stdin: document 1: Namespace b: duplicate object, already defined in " + file + ": document 2: items[0]"
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestObjectInTwoVersionsIsADuplicate(t *testing.T) {
	grant := func(version string) string {
		return "---\napiVersion: gateway.networking.k8s.io/" + version + `
kind: ReferenceGrant
metadata: {name: g}
spec: {from: [{group: "", kind: A, namespace: b}], to: [{group: "", kind: C}]}
`
	}
	want := []string{"in.yaml: document 2: ReferenceGrant default/g: duplicate object, already defined in in.yaml: document 1"}
	if diff := cmp.Diff(want, parseErrors(t, grant("v1")+grant("v1beta1"))); diff != "" {
		t.Error(diff)
	}
}

func TestErrorNamesPlaceObjectAndField(t *testing.T) {
	_, err := Parse("in.yaml", []byte(namespace("a")+"---\n"+gateway("{name: a, port: 0, protocol: HTTP}")), Options{})
	var first *Error
	if !errors.As(err, &first) {
		t.Fatalf("errors.As(%v, *Error) = false", err)
	}
	if want := (Place{File: "in.yaml", Document: 2}); first.Place != want {
		t.Errorf("Place = %v, want %v", first.Place, want)
	}
	if want := "Gateway default/shared"; first.Object != want {
		t.Errorf("Object = %q, want %q", first.Object, want)
	}
	if want := "spec.listeners[0].port"; first.Field() != want {
		t.Errorf("Field() = %q, want %q", first.Field(), want)
	}
	if field := (&Error{Err: fs.ErrNotExist}).Field(); field != "" {
		t.Errorf("Field() of an error without a field = %q, want none", field)
	}
}
