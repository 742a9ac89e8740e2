package main

import (
	"go/ast"
	"go/types"
)

// dataFlow records which expressions the code assigns to variables and fields,
// passes as parameters, and returns from functions. It ignores control flow.
type dataFlow struct {
	*source
	// catalogued are the names of the types whose values are all in a catalogue.
	catalogued  []string
	assignments map[types.Object][]value
	returns     map[*types.Func][][]value
	calls       map[*types.Func][]*ast.CallExpr
}

// value is an expression. If the expression is a call, result is the index of one
// of its results.
type value struct {
	ast.Expr
	result int
}

// newDataFlow records the data flow of all packages of the source.
func newDataFlow(s *source, catalogued ...string) *dataFlow {
	f := &dataFlow{
		source: s, catalogued: catalogued,
		assignments: map[types.Object][]value{}, returns: map[*types.Func][][]value{}, calls: map[*types.Func][]*ast.CallExpr{},
	}
	for _, files := range s.files {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool { f.record(n); return true })
		}
	}
	return f
}

// record records the data flow of a node, without the nodes in it.
func (f *dataFlow) record(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		f.recordReturns(n)
	case *ast.RangeStmt:
		if list, ok := n.X.(*ast.CompositeLit); ok && n.Value != nil {
			for _, element := range list.Elts {
				f.assign(f.object(n.Value), value{element, 0})
			}
		}
	case *ast.CompositeLit:
		f.recordLiteral(n)
	case *ast.AssignStmt:
		f.recordAssignment(n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		names := make([]ast.Expr, len(n.Names))
		for i, name := range n.Names {
			names[i] = name
		}
		f.recordAssignment(names, n.Values)
	case *ast.CallExpr:
		f.recordCall(n)
	}
}

func (f *dataFlow) assign(target types.Object, v value) {
	if target != nil {
		f.assignments[target] = append(f.assignments[target], v)
	}
}

func (f *dataFlow) recordLiteral(n *ast.CompositeLit) {
	fields, ok := f.info.Types[n].Type.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range n.Elts {
		if pair, keyed := element.(*ast.KeyValueExpr); keyed {
			f.assign(f.object(pair.Key), value{pair.Value, 0})
			continue
		}
		f.assign(fields.Field(i), value{element, 0})
	}
}

func (f *dataFlow) recordAssignment(left, right []ast.Expr) {
	for i, target := range left {
		switch {
		case len(left) == len(right):
			f.assign(f.object(target), value{right[i], 0})
		case len(right) == 1:
			f.assign(f.object(target), value{right[0], i})
		}
	}
}

func (f *dataFlow) recordCall(n *ast.CallExpr) {
	callee := f.callee(n)
	if callee == nil {
		return
	}
	f.calls[callee] = append(f.calls[callee], n)
	parameters := callee.Signature().Params()
	for i := range min(parameters.Len(), len(n.Args)) {
		f.assign(parameters.At(i), value{n.Args[i], 0})
	}
}

// recordReturns records the values that a function returns. It skips the function
// literals in the function.
func (f *dataFlow) recordReturns(function *ast.FuncDecl) {
	object, ok := f.info.Defs[function.Name].(*types.Func)
	if !ok || function.Body == nil {
		return
	}
	results := make([][]value, object.Signature().Results().Len())
	ast.Inspect(function.Body, func(n ast.Node) bool {
		if _, literal := n.(*ast.FuncLit); literal {
			return false
		}
		if statement, ok := n.(*ast.ReturnStmt); ok {
			for i := range results {
				switch len(statement.Results) {
				case len(results):
					results[i] = append(results[i], value{statement.Results[i], 0})
				case 1:
					results[i] = append(results[i], value{statement.Results[0], i})
				}
			}
		}
		return true
	})
	f.returns[object] = results
}

// callee returns the function that the call calls, or nil if it is not a named
// function.
func (f *dataFlow) callee(n *ast.CallExpr) *types.Func {
	function, _ := f.object(ast.Unparen(n.Fun)).(*types.Func)
	if function == nil {
		return nil
	}
	return function.Origin()
}

// object returns the object that an identifier or a selector refers to, or nil.
func (f *dataFlow) object(e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		if defined := f.info.Defs[e]; defined != nil {
			return defined
		}
		return f.info.Uses[e]
	case *ast.SelectorExpr:
		if selected := f.info.Selections[e]; selected != nil {
			return selected.Obj()
		}
		return f.info.Uses[e.Sel]
	}
	return nil
}
