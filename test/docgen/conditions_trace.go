package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
)

// positions maps a string constant to a position in the code that uses it.
type positions map[string]string

// strings returns every string that the code can assign to a variable, a field or
// a parameter. It returns an error if the code computes a string at run time.
func (f *dataFlow) strings(target types.Object) (positions, error) {
	t := &trace{dataFlow: f, visited: map[types.Object]bool{}, found: positions{}}
	if err := t.object(target); err != nil {
		return nil, err
	}
	return t.found, nil
}

// trace follows a value back to the string constants that it can have. It stops
// at values of a catalogued type.
type trace struct {
	*dataFlow
	visited map[types.Object]bool
	found   positions
}

// object follows the values that the code assigns to the object.
func (t *trace) object(target types.Object) error {
	if t.visited[target] {
		return nil
	}
	t.visited[target] = true
	return t.values(t.assignments[target])
}

func (t *trace) values(all []value) error {
	for _, v := range all {
		if err := t.value(v); err != nil {
			return err
		}
	}
	return nil
}

func (t *trace) value(v value) error {
	e := ast.Unparen(v.Expr)
	typed := t.info.Types[e]
	if typed.Value != nil && typed.Value.Kind() == constant.String {
		if text := constant.StringVal(typed.Value); text != "" { // "" is the absence of a reason
			t.found[text] = t.fset.Position(e.Pos()).String()
		}
		return nil
	}
	catalogued := typed.Type != nil && slices.Contains(t.catalogued, typed.Type.String())
	if call, ok := e.(*ast.CallExpr); ok && (!catalogued || t.isConversion(call)) {
		return t.call(call, v.result)
	}
	if catalogued {
		return nil
	}
	if variable, ok := t.dataFlow.object(e).(*types.Var); ok && len(t.assignments[variable]) > 0 {
		return t.object(variable)
	}
	return t.unknown(e, "the value is not a constant")
}

// call follows a result of a call, or the operand of a conversion.
func (t *trace) call(n *ast.CallExpr, result int) error {
	if t.isConversion(n) {
		return t.value(value{n.Args[0], 0})
	}
	callee := t.callee(n)
	if callee == nil {
		return t.unknown(n, "the called function is not known")
	}
	if callee.FullName() == "cmp.Or" {
		for _, argument := range n.Args {
			if err := t.value(value{argument, 0}); err != nil {
				return err
			}
		}
		return nil
	}
	results, found := t.returns[callee]
	if !found {
		return t.unknown(n, callee.FullName()+" is not a function of this module")
	}
	return t.values(results[result])
}

// isConversion reports whether the call is a conversion.
func (t *trace) isConversion(n *ast.CallExpr) bool { return t.info.Types[n.Fun].IsType() }

// unknown returns the error for an expression whose values cannot be listed.
func (t *trace) unknown(e ast.Expr, reason string) error {
	return fmt.Errorf("%s: cannot list all types and reasons: %s", t.fset.Position(e.Pos()), reason)
}

// events returns the types and reasons that the code can pass to a function, each
// with a position. The parameters eventType and reason are indexes of the
// function's parameters. A function that only passes on its parameters is
// replaced by its callers. Reasons that come from the excluded object are
// omitted.
func (f *dataFlow) events(function *types.Func, eventType, reason int, excluded types.Object) (map[eventKey]string, error) {
	all := map[eventKey]string{}
	for _, call := range f.calls[function] {
		typeArgument, reasonArgument := call.Args[eventType], call.Args[reason]
		if caller, i, j := f.forwarder(typeArgument, reasonArgument); caller != nil {
			inner, err := f.events(caller, i, j, excluded)
			if err != nil {
				return nil, err
			}
			for event, position := range inner {
				all[event] = position
			}
			continue
		}
		t := &trace{dataFlow: f, visited: map[types.Object]bool{excluded: true}, found: positions{}}
		if err := t.value(value{reasonArgument, 0}); err != nil {
			return nil, err
		}
		constantType := ""
		if typed := f.info.Types[typeArgument]; typed.Value != nil {
			constantType = constant.StringVal(typed.Value)
		}
		for text, position := range t.found {
			all[eventKey{constantType, text}] = position
		}
	}
	return all, nil
}

// forwarder returns the function that has both expressions as parameters, and
// the indexes of the parameters. It returns nil if there is no such function.
func (f *dataFlow) forwarder(first, second ast.Expr) (function *types.Func, i, j int) {
	for function := range f.returns {
		parameters := slices.Collect(function.Signature().Params().Variables())
		i = slices.IndexFunc(parameters, func(p *types.Var) bool { return p == f.object(first) })
		j = slices.IndexFunc(parameters, func(p *types.Var) bool { return p == f.object(second) })
		if i >= 0 && j >= 0 {
			return function, i, j
		}
	}
	return nil, 0, 0
}
