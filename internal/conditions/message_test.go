package conditions_test

import (
	"go/ast"
	"go/token"
	"strconv"
	"testing"
)

// A message is a text for people, so it can change in any release.
func TestNoCodeComparesTheMessageOfACondition(t *testing.T) {
	parseSource(t).inspect(func(file string, n ast.Node, where string) {
		for _, compared := range comparedMessages(n) {
			if key := file + " " + compared; !notConditions[key] {
				t.Errorf("%s: compares %s, which can be the message of a condition", where, compared)
			}
		}
	})
}

// notConditions are the messages that the code compares, and that are not messages of conditions.
var notConditions = map[string]bool{
	"internal/controller/notifier.go previous.Message": true, // of a problem of a tunnel
	"internal/controller/warnings.go w.Message":        true, // of a warning about a Gateway
}

// comparedMessages returns the fields Message that the node compares with anything but "".
func comparedMessages(n ast.Node) []string {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if n.Op == token.EQL || n.Op == token.NEQ {
			if text := messageOf(n.X); text != "" && !isEmptyString(n.Y) {
				return []string{text}
			}
			if text := messageOf(n.Y); text != "" && !isEmptyString(n.X) {
				return []string{text}
			}
		}
	case *ast.SwitchStmt:
		if text := messageOf(n.Tag); text != "" {
			return []string{text}
		}
	case *ast.CallExpr:
		selector, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		if x, ok := selector.X.(*ast.Ident); ok && x.Name == "strings" && comparesStrings[selector.Sel.Name] {
			for _, argument := range n.Args {
				if text := messageOf(argument); text != "" {
					return []string{text}
				}
			}
		}
	}
	return nil
}

// comparesStrings contains the functions of package strings that compare.
var comparesStrings = map[string]bool{
	"Contains": true, "HasPrefix": true, "HasSuffix": true, "EqualFold": true, "Index": true, "Compare": true, "Cut": true, "CutPrefix": true, "CutSuffix": true,
}

// messageOf returns the expression if it is a field with the name Message, or "".
func messageOf(e ast.Expr) string {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Message" {
		return ""
	}
	if x, ok := selector.X.(*ast.Ident); ok {
		return x.Name + ".Message"
	}
	return "(…).Message"
}

func isEmptyString(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return false
	}
	value, err := strconv.Unquote(literal.Value)
	return err == nil && value == ""
}
