package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"oss.terrastruct.com/d2/d2target"
)

const root = "../.."

func TestPicturesAreUpToDate(t *testing.T) {
	names, err := pictures()
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		_, want, err := render(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if committed := read(t, filepath.Join(directory, name+".svg")); committed != string(want) {
			t.Errorf("docs/pictures/%s.svg differs from its source: run make generate", name)
		}
	}
	for _, file := range glob(t, filepath.Join(directory, "*.svg")) {
		if !slices.Contains(names, strings.TrimSuffix(filepath.Base(file), ".svg")) {
			t.Errorf("%s has no source", file)
		}
	}
}

func TestEveryPictureHasAPageAndAnAlternativeText(t *testing.T) {
	var text strings.Builder
	for _, pattern := range []string{"docs/*.md", "docs/guides/*.md"} {
		for _, file := range glob(t, filepath.Join(root, pattern)) {
			text.WriteString(read(t, file))
		}
	}
	names, err := pictures()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		image := regexp.MustCompile(`!\[[^]]{20,}\]\((\.\./)?pictures/` + name + `\.svg\)`)
		if !image.MatchString(text.String()) {
			t.Errorf("no page shows %s.svg with an alternative text", name)
		}
	}
}

func TestPicturesShowEveryPhase(t *testing.T) {
	for _, test := range []struct{ picture, phaseType string }{
		{"tunnel-phases", "TunnelPhase"},
		{"data-plane-change", "DataPlaneChangePhase"},
	} {
		var shown []string
		for _, shape := range diagram(t, test.picture).Shapes {
			if slices.Contains(shape.Classes, "phase") {
				phase, _, _ := strings.Cut(shape.Label, "\n")
				shown = append(shown, phase)
			}
		}
		slices.Sort(shown)
		if shown, defined := slices.Compact(shown), constants(t, test.phaseType); !slices.Equal(shown, defined) {
			t.Errorf("%s.d2 shows the phases %q, but %s has %q", test.picture, shown, test.phaseType, defined)
		}
	}
}

// constants returns the sorted values of all constants in api/v1alpha1 with the type.
func constants(t *testing.T, typeName string) []string {
	t.Helper()
	var values []string
	for _, file := range glob(t, filepath.Join(root, "api/v1alpha1/*.go")) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != typeName {
				return true
			}
			for _, value := range spec.Values {
				text, err := strconv.Unquote(value.(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, text)
			}
			return true
		})
	}
	slices.Sort(values)
	return values
}

func TestOwnersOfHostnamesAreThoseOfTheExample(t *testing.T) {
	// Another test compares the table of the page with the output of plan.
	columns := regexp.MustCompile(`  +`)
	page := columns.ReplaceAllString(read(t, filepath.Join(root, "docs/concepts.md")), "|")
	picture := diagram(t, "hostname-owners")
	label := map[string]string{}
	for _, shape := range picture.Shapes {
		label[shape.ID] = shape.Label
	}
	if len(picture.Connections) == 0 {
		t.Fatal("the picture has no arrows")
	}
	for _, arrow := range picture.Connections {
		owner, listener, _ := strings.Cut(label[arrow.Src], "\nlistener ")
		state := arrow.Label
		if state == "owns" {
			state = "served"
		}
		row := fmt.Sprintf("\n%s|80 HTTP|%s|%s|%s|", label[arrow.Dst], owner, listener, state)
		if !strings.Contains(page, row) {
			t.Errorf("concepts.md has no row %q", row)
		}
	}
}

func diagram(t *testing.T, name string) *d2target.Diagram {
	t.Helper()
	result, _, err := render(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(pattern, files, err)
	}
	return files
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
