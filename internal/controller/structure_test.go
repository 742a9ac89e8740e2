package controller

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sources parses a package's files without its tests, by their names.
func sources(t *testing.T, folder string) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	fset, files := token.NewFileSet(), map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[filepath.Base(name)], err = parser.ParseFile(fset, name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return fset, files
}

// A reader of a field sees whose state it is.
func TestNoStructEmbedsATypeOfThisModule(t *testing.T) {
	for _, folder := range []string{".", "../decision"} {
		fset, files := sources(t, folder)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				s, ok := n.(*ast.StructType)
				if !ok {
					return true
				}
				for _, field := range s.Fields.List {
					if len(field.Names) == 0 && isOfThisModule(file, field.Type) {
						t.Errorf("%s: the struct embeds a type of this module; give the field a name", fset.Position(field.Pos()))
					}
				}
				return true
			})
		}
	}
}

// isOfThisModule reports whether the type, or the type that it points to, is declared
// in this module.
func isOfThisModule(file *ast.File, expression ast.Expr) bool {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return isOfThisModule(file, e.X)
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		name := e.X.(*ast.Ident).Name
		return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
			path := strings.Trim(i.Path.Value, `"`)
			return strings.HasPrefix(path, "github.com/tunnel-gateway/") && (i.Name != nil && i.Name.Name == name || strings.HasSuffix(path, "/"+name))
		})
	default:
		return false
	}
}

// What the process remembers about a Gateway is in its memory, where it is forgotten.
// It also removes the followers. The other two files compare Gateways with each other.
func TestOnlyMemoryHasMapsOfGateways(t *testing.T) {
	allowed := []string{"memory.go", "followers.go", "sharedhostnames.go", "listenersetgateways.go", "undecided.go", "dns.go", "access.go"}
	fset, files := sources(t, ".")
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				if m, ok := field.Type.(*ast.MapType); ok && isGatewayKey(m.Key) && !isSetOfServices(field) && !slices.Contains(allowed, name) {
					t.Errorf("%s: a map of Gateways outside %s", fset.Position(field.Pos()), strings.Join(allowed, ", "))
				}
			}
			return true
		})
	}
}

func isGatewayKey(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && slices.Contains([]string{"Key", "Owner", "NamespacedName"}, s.Sel.Name)
}

// isSetOfServices reports whether the field is a publication's set of Services.
func isSetOfServices(field *ast.Field) bool { return field.Names[0].Name == "services" }

// Only what newProcess has set is shared by all Gateways.
func TestOnlyNewProcessSetsTheFieldsOfAProcess(t *testing.T) {
	fset, files := sources(t, ".")
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			assignment, ok := n.(*ast.AssignStmt)
			if !ok || name == "process.go" {
				return true
			}
			for _, left := range assignment.Lhs {
				s, ok := left.(*ast.SelectorExpr)
				if !ok {
					continue
				}
				if isProcess(s.X) {
					t.Errorf("%s: an assignment to a field of the process", fset.Position(s.Pos()))
				}
			}
			return true
		})
	}
}

// isProcess reports whether the expression is a process receiver, or a run's process.
func isProcess(e ast.Expr) bool {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return s.Sel.Name == "process"
	}
	ident, ok := e.(*ast.Ident)
	if !ok || ident.Obj == nil {
		return false
	}
	field, ok := ident.Obj.Decl.(*ast.Field)
	if !ok {
		return false
	}
	pointer, ok := field.Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := pointer.X.(*ast.Ident)
	return ok && name.Name == "process"
}

// Only leave and forget forget what the process remembers about a Gateway.
func TestOnlyLeaveAndForgetForgetAGateway(t *testing.T) {
	callers := map[string][]string{
		"memories.forget":  {"forget"},
		"writer.Forget":    {"leave"},
		"hostnames.remove": {"leave"},
		"dns.forget":       {"forget"},
		// Even if the Tunnel was replaced, or if its data plane has changed.
		"envoys.remove": {"forget", "publish"},
		// A Gateway's Envoys keep their streams while a newer controller serves it.
		"e.forget":                 {"remove", "withhold"},
		"memories.takePublication": {"forget"},
		"server.Remove":            {"remove"},
		"sets.forget":              {"reconcileListenerSet"}, // a ListenerSet
	}
	seen := map[string]bool{}
	fset, files := sources(t, ".")
	for _, file := range files {
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(function, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				name := method(call.Fun)
				seen[name] = true
				if permitted := callers[name]; permitted != nil && !slices.Contains(permitted, function.Name.Name) {
					t.Errorf("%s: %s calls %s, want only %s", fset.Position(call.Pos()), function.Name.Name, name, permitted)
				}
				return true
			})
		}
	}
	for name := range callers {
		if !seen[name] {
			t.Errorf("nothing calls %s, so this test cannot fail", name)
		}
	}
}

// Only one function reads the annotation that pauses, so that all callers agree on its
// values.
func TestOnlyRequestsPauseReadsTheAnnotation(t *testing.T) {
	folders, err := filepath.Glob("../*")
	if err != nil {
		t.Fatal(err)
	}
	readers := 0
	for _, folder := range append(folders, "../../api/v1alpha1") {
		if names, err := filepath.Glob(filepath.Join(folder, "*.go")); err != nil || len(names) == 0 {
			continue
		}
		fset, files := sources(t, folder)
		for name, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				index, ok := n.(*ast.IndexExpr)
				if !ok || !strings.HasSuffix("."+selector(index.Index), ".PausedAnnotation") {
					return true
				}
				if readers++; name != "annotations.go" {
					t.Errorf("%s: use v1alpha1.RequestsPause", fset.Position(index.Pos()))
				}
				return true
			})
		}
	}
	if readers == 0 {
		t.Error("nothing reads the annotation, so this test cannot fail")
	}
}

// method returns a selector's last two names, such as b.c for a.b.c.
func method(e ast.Expr) string {
	names := strings.Split(selector(e), ".")
	return strings.Join(names[max(0, len(names)-2):], ".")
}

// selector returns nested selectors as text, such as a.b.c, or "".
func selector(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return selector(e.X) + "." + e.Sel.Name
	default:
		return ""
	}
}
