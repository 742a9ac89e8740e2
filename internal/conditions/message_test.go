package conditions_test

import (
	"go/ast"
	"go/token"
	"go/types"
	"strconv"
	"testing"
)

// A message is a text for people, so it can change in any release.
func TestNoCodeComparesTheMessageOfACondition(t *testing.T) {
	parseSource(t).inspect(func(file string, n ast.Node, where string) {
		for _, message := range comparedMessages(n) {
			if key := file + " " + message; !notConditions[key] {
				t.Errorf("%s: compares %s, which can be the message of a condition", where, message)
			}
		}
	})
}

// notConditions are the messages that the code compares, although they can change: they do
// not come from conditions, or the code does not depend on their text.
var notConditions = map[string]bool{
	"internal/controller/notifier.go previous.Message":        true, // about a tunnel problem
	"internal/controller/notifier.go current.Problem.Message": true,
	"internal/controller/warnings.go w.Message":               true, // in a warning about a Gateway
	"internal/gateway/policystatus.go c.Message":              true, // compared with another one, so that none is printed twice
	"internal/plan/explanationsteps.go u.Message":             true, // for the same reason
}

// comparedMessages returns the fields Message that the node compares with anything but "".
func comparedMessages(n ast.Node) []string {
	var messages []string
	for _, e := range compared(n) {
		if text := messageOf(e); text != "" {
			messages = append(messages, text)
		}
	}
	return messages
}

// compared returns the expressions that the node compares with anything but "".
func compared(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && !isEmptyString(n.X) && !isEmptyString(n.Y) {
			return []ast.Expr{n.X, n.Y}
		}
	case *ast.SwitchStmt:
		return []ast.Expr{n.Tag}
	case *ast.CallExpr:
		if selector, ok := n.Fun.(*ast.SelectorExpr); ok && comparesStrings[selector.Sel.Name] && isSelector(selector, "strings", selector.Sel.Name) {
			return n.Args
		}
	}
	return nil
}

// comparesStrings contains the comparing functions in package strings.
var comparesStrings = map[string]bool{
	"Contains": true, "HasPrefix": true, "HasSuffix": true, "EqualFold": true, "Index": true, "Compare": true, "Cut": true, "CutPrefix": true, "CutSuffix": true,
}

// messageOf returns the expression if it is a field with the name Message, or "".
func messageOf(e ast.Expr) string {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Message" {
		return ""
	}
	return types.ExprString(selector)
}

func isEmptyString(e ast.Expr) bool {
	literal, ok := e.(*ast.BasicLit)
	if !ok {
		return false
	}
	value, err := strconv.Unquote(literal.Value)
	return err == nil && value == ""
}
