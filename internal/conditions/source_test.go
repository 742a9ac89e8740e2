package conditions_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// source is the product's source code without tests and this package.
type source struct {
	fset  *token.FileSet
	files map[string]*ast.File // by the path from the root
}

func parseSource(t *testing.T) source {
	t.Helper()
	s := source{token.NewFileSet(), map[string]*ast.File{}}
	for _, directory := range []string{"api", "cmd", "internal", "provider"} {
		err := filepath.WalkDir(filepath.Join(root, directory), func(path string, _ fs.DirEntry, err error) error {
			name, _ := filepath.Rel(root, path)
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "internal/conditions/") {
				return err
			}
			s.files[filepath.ToSlash(name)], err = parser.ParseFile(s.fset, path, nil, parser.SkipObjectResolution)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(s.files) < 100 {
		t.Fatalf("only %d files were parsed", len(s.files))
	}
	return s
}

// inspect calls the function for each node in the source. where describes its position.
func (s source) inspect(f func(file string, n ast.Node, where string)) {
	for name, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			if n != nil {
				f(name, n, s.fset.Position(n.Pos()).String())
			}
			return true
		})
	}
}

// variables returns the variables that the catalogue defines.
func variables(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "zz_generated.catalogue.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, declaration := range file.Decls {
		if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.VAR {
			for _, spec := range general.Specs {
				names = append(names, spec.(*ast.ValueSpec).Names[0].Name)
			}
		}
	}
	if len(names) < 100 {
		t.Fatalf("found only %d variables", len(names))
	}
	return names
}

// isSelector reports whether the expression selects the name from the package.
func isSelector(e ast.Expr, packageName, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == packageName && selector.Sel.Name == name
}

func TestTheProductUsesEveryTypeReasonAndEvent(t *testing.T) {
	used := map[string]bool{}
	parseSource(t).inspect(func(_ string, n ast.Node, _ string) {
		if selector, ok := n.(*ast.SelectorExpr); ok && isSelector(selector, "conditions", selector.Sel.Name) {
			used[selector.Sel.Name] = true
		}
	})
	for _, name := range variables(t) {
		if !used[name] {
			t.Errorf("no code uses %s: remove it from catalogue.yaml", name)
		}
	}
}

// A condition that another function creates could have a type or a reason that the catalogue does
// not describe.
func TestOnlyNewCreatesConditions(t *testing.T) {
	parseSource(t).inspect(func(_ string, n ast.Node, where string) {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if array, ok := n.Type.(*ast.ArrayType); len(n.Elts) > 0 && (isCondition(n.Type) || ok && isCondition(array.Elt)) {
				t.Errorf("%s: create the condition with New of its type", where)
			}
		case *ast.AssignStmt:
			if assignsReason(n) {
				t.Errorf("%s: use a reason of package conditions", where)
			}
		}
	})
}

func isCondition(e ast.Expr) bool { return e != nil && isSelector(e, "metav1", "Condition") }

// assignsReason reports whether the statement assigns a literal to a field Reason.
func assignsReason(n *ast.AssignStmt) bool {
	for i, target := range n.Lhs {
		selector, ok := target.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Reason" || len(n.Rhs) != len(n.Lhs) {
			continue
		}
		if _, ok := n.Rhs[i].(*ast.BasicLit); ok && !isEmptyString(n.Rhs[i]) {
			return true
		}
	}
	return false
}

func TestOnlyTheNotifierEmitsEvents(t *testing.T) {
	calls := 0
	parseSource(t).inspect(func(file string, n ast.Node, where string) {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != "Eventf" {
			return
		}
		if calls++; file != "internal/controller/notifier.go" {
			t.Errorf("%s: only the notifier emits events", where)
		}
	})
	if calls == 0 {
		t.Error("no code emits events")
	}
}
