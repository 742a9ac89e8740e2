package limits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestLabelsOfNames(t *testing.T) {
	for name, want := range map[Name]string{
		RulesPerTunnel: "rules_per_tunnel", RulesPerNamespace: "rules_per_namespace", RoutesPerHostname: "routes_per_hostname",
		ListenersPerNamespace: "listeners_per_namespace", ExpressionsPerNamespace: "regular_expressions_per_namespace",
		ExpressionsPerTunnel: "regular_expressions_per_tunnel", RepeatedPerTunnel: "repeated_rules_per_tunnel",
	} {
		if got := name.Label(); got != want {
			t.Errorf("the label of %s is %q, want %q", name, got, want)
		}
	}
}

// Only name.go spells out limit names. Other packages and the metric labels use its
// constants.
func TestNamesOfLimitsAreLiteralsInOneFile(t *testing.T) {
	names := map[string]bool{}
	for _, literal := range literals(t, "name.go") {
		if name, err := strconv.Unquote(literal); err == nil && strings.Contains(name, "Per") {
			names[name], names[Name(name).Label()] = true, true
		}
	}
	if want := 2 * 7; len(names) != want {
		t.Fatalf("found %d names and labels in name.go, want %d", len(names), want)
	}
	for _, file := range productFiles(t) {
		for _, literal := range literals(t, file) {
			if value, err := strconv.Unquote(literal); err == nil && names[value] && file != filepath.Join(root, "internal/limits/name.go") {
				t.Errorf("%s contains the literal %s, want a constant of internal/limits", file, literal)
			}
		}
	}
}

const root = "../.."

func productFiles(t *testing.T) (files []string) {
	t.Helper()
	for _, folder := range []string{"api", "cmd", "internal", "provider"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// literals returns the string literals in a file, as written.
func literals(t *testing.T, file string) (all []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			all = append(all, literal.Value)
		}
		return true
	})
	return all
}
