package tunnel

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources parses the files of the package, without its tests.
func sources(t *testing.T) []*ast.File {
	t.Helper()
	fset := gotoken.NewFileSet()
	packages, err := parser.ParseDir(fset, ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, parser.SkipObjectResolution) //nolint:staticcheck // one package without build tags
	if err != nil {
		t.Fatal(err)
	}
	var files []*ast.File
	for _, file := range packages["tunnel"].Files {
		files = append(files, file)
	}
	if len(files) < 10 {
		t.Fatalf("only %d files were parsed", len(files))
	}
	return files
}

// constants returns the values of the constants of a type by name, and how often functions
// of the package use each name.
func constants(t *testing.T, files []*ast.File, typeName string) (values map[string]string, uses map[string]int) {
	t.Helper()
	values, uses = map[string]string{}, map[string]int{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			general, ok := declaration.(*ast.GenDecl)
			switch {
			case !ok:
				countUses(declaration, uses)
			case general.Tok == gotoken.CONST:
				for _, spec := range general.Specs {
					declareConstants(t, spec.(*ast.ValueSpec), typeName, values)
				}
			}
		}
	}
	return values, uses
}

func declareConstants(t *testing.T, spec *ast.ValueSpec, typeName string, values map[string]string) {
	t.Helper()
	if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != typeName {
		return
	}
	for i, name := range spec.Names {
		literal, ok := spec.Values[i].(*ast.BasicLit)
		if !ok {
			t.Fatalf("%s is not a literal", name.Name)
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		values[name.Name] = value
	}
}

func countUses(node ast.Node, uses map[string]int) {
	ast.Inspect(node, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			uses[name.Name]++
		}
		return true
	})
}

// checkCatalogue checks that a catalogue has one entry for each constant, and that the
// package uses each constant.
func checkCatalogue(t *testing.T, values map[string]string, uses map[string]int, entries []string) {
	t.Helper()
	if len(values) == 0 {
		t.Fatal("found no constants")
	}
	for name, value := range values {
		if !slices.Contains(entries, value) {
			t.Errorf("%s has no entry in the catalogue", name)
		}
		if uses[name] == 0 {
			t.Errorf("%s is not used", name)
		}
		if !regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`).MatchString(value) {
			t.Errorf("%s is %q, which is not a valid reason of a condition or an event", name, value)
		}
	}
	for i, entry := range entries {
		if slices.Contains(entries[:i], entry) {
			t.Errorf("%s has two entries", entry)
		}
	}
	if len(entries) != len(values) {
		t.Errorf("the catalogue has %d entries for %d constants", len(entries), len(values))
	}
}

func TestCatalogueDescribesEveryReason(t *testing.T) {
	values, uses := constants(t, sources(t), "Reason")
	var entries []string
	for _, e := range slices.Concat(Catalogue, States) {
		entries = append(entries, string(e.Reason))
	}
	checkCatalogue(t, values, uses, entries)
}

func TestCatalogueDescribesEveryEvent(t *testing.T) {
	values, uses := constants(t, sources(t), "EventReason")
	var entries []string
	for _, e := range Events {
		entries = append(entries, string(e.Reason))
	}
	checkCatalogue(t, values, uses, entries)
}

func TestProblemsAndEventsUseTheCatalogue(t *testing.T) {
	files := sources(t)
	reasons, _ := constants(t, files, "Reason")
	events, _ := constants(t, files, "EventReason")
	// The index of the reason in the arguments of the functions that take one.
	functions := map[string]struct {
		argument int
		names    map[string]string
	}{"problem": {0, reasons}, "newEvent": {0, events}, "condition": {2, reasons}}
	calls := map[string]int{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			function, ok := call.Fun.(*ast.Ident)
			if !ok {
				return true
			}
			position, ok := functions[function.Name]
			if !ok {
				return true
			}
			calls[function.Name]++
			switch argument := call.Args[position.argument].(type) {
			case *ast.Ident:
				if _, ok := position.names[argument.Name]; !ok {
					t.Errorf("%s is called with %s, which is not a constant of the catalogue", function.Name, argument.Name)
				}
			case *ast.BasicLit:
				t.Errorf("%s is called with the literal %s", function.Name, argument.Value)
			}
			return true
		})
	}
	for name := range functions {
		if calls[name] == 0 {
			t.Errorf("%s is not called", name)
		}
	}
}

func TestMeaningsAndRemediesAreSentences(t *testing.T) {
	// Meanings and remedies are sentences, and the remedy of a problem that requires a user
	// describes an action.
	check := func(name, meaning, remedy string) {
		t.Helper()
		checkSentence(t, "the meaning of "+name, meaning)
		checkSentence(t, "the remedy of "+name, remedy)
	}
	for _, e := range slices.Concat(Catalogue, States) {
		check(string(e.Reason), e.Meaning, e.Remedy)
		if e.RequiresAction && (e.Remedy == "Nothing." || e.Remedy == "Wait.") {
			t.Errorf("%s requires a user, but its remedy describes no action", e.Reason)
		}
	}
	for _, e := range Events {
		check(string(e.Reason), e.Meaning, e.Remedy)
	}
}
