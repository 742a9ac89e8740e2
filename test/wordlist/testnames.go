package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// maxTestNameWords limits the names that tests and subtests have. A test with several
// facts in its name needs subtests instead.
const maxTestNameWords = 14

// testFunctions are functions from testing and Ginkgo whose first argument is a name.
var testFunctions = []string{"Run", "It", "Entry", "Describe", "Context", "When", "DescribeTable"}

// checkTestNames reports long names for tests, subtests and rows in test tables.
func checkTestNames(files []file) []finding {
	var findings []finding
	for _, f := range files {
		if !strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		positions := token.NewFileSet()
		parsed, err := parser.ParseFile(positions, f.path, f.content, parser.SkipObjectResolution)
		if err != nil {
			findings = append(findings, finding{f.path, 0, err.Error()})
			continue
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			for _, name := range testNames(n) {
				if words := len(strings.Fields(name.text)); words > maxTestNameWords {
					line := positions.Position(name.position).Line
					findings = append(findings, finding{f.path, line, fmt.Sprintf("test name with %d words, the maximum is %d: %s", words, maxTestNameWords, name.text)})
				}
			}
			return true
		})
	}
	return findings
}

// testName names a test or a subtest.
type testName struct {
	position token.Pos
	text     string
}

// testNames returns the names that the node gives to tests, but not its children.
func testNames(n ast.Node) []testName {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if name, ok := strings.CutPrefix(n.Name.Name, "Test"); ok && n.Recv == nil {
			return []testName{{n.Pos(), splitIdentifier(name)}}
		}
	case *ast.CallExpr:
		if len(n.Args) > 0 && slices.Contains(testFunctions, functionName(n.Fun)) {
			return literals(n.Args[0])
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "name" {
			return literals(n.Value)
		}
	case *ast.CompositeLit:
		return rowNames(n)
	}
	return nil
}

// functionName returns the name without its package or receiver.
func functionName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	default:
		return ""
	}
}

// rowNames returns the keys if the table is a map. In a list whose rows begin with the
// field name, it returns this field.
func rowNames(table *ast.CompositeLit) []testName {
	var names []testName
	switch t := table.Type.(type) {
	case *ast.MapType:
		if _, imported := t.Value.(*ast.SelectorExpr); imported || isIdent(t.Value, "error") {
			return nil // usually inputs by their expected message
		}
		for _, row := range table.Elts {
			if row, ok := row.(*ast.KeyValueExpr); ok {
				names = append(names, literals(row.Key)...)
			}
		}
	case *ast.ArrayType:
		if !firstFieldIsName(t.Elt) {
			return nil
		}
		for _, row := range table.Elts {
			if row, ok := row.(*ast.CompositeLit); ok && len(row.Elts) > 0 {
				names = append(names, literals(row.Elts[0])...)
			}
		}
	}
	return names
}

func isIdent(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

func firstFieldIsName(e ast.Expr) bool {
	s, ok := e.(*ast.StructType)
	return ok && len(s.Fields.List) > 0 && len(s.Fields.List[0].Names) > 0 && s.Fields.List[0].Names[0].Name == "name"
}

// literals returns the value if the expression is a string literal.
func literals(e ast.Expr) []testName {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return nil
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return nil
	}
	return []testName{{literal.Pos(), value}}
}
