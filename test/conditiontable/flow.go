package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/types"
	"slices"
)

// flow is which expressions become which values: what is assigned to a
// variable or a field, passed as a parameter, returned by a function. It does
// not look at when.
type flow struct {
	*source
	// catalogues are the names of the types of which a catalogue has all values.
	catalogues []string
	written    map[types.Object][]value
	results    map[*types.Func][][]value
	calls      map[*types.Func][]*ast.CallExpr
}

// value is an expression, or one of the results of one that is a call.
type value struct {
	ast.Expr
	result int
}

func newFlow(s *source, catalogues ...string) *flow {
	f := &flow{
		source: s, catalogues: catalogues, written: map[types.Object][]value{}, results: map[*types.Func][][]value{}, calls: map[*types.Func][]*ast.CallExpr{},
	}
	for _, files := range s.files {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool { f.note(n); return true })
		}
	}
	return f
}

func (f *flow) note(n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		f.returns(n)
	case *ast.RangeStmt:
		if list, ok := n.X.(*ast.CompositeLit); ok && n.Value != nil {
			for _, element := range list.Elts {
				f.write(f.object(n.Value), value{element, 0})
			}
		}
	case *ast.CompositeLit:
		f.literal(n)
	case *ast.AssignStmt:
		f.assign(n.Lhs, n.Rhs)
	case *ast.ValueSpec:
		names := make([]ast.Expr, len(n.Names))
		for i, name := range n.Names {
			names[i] = name
		}
		f.assign(names, n.Values)
	case *ast.CallExpr:
		f.call(n)
	}
}

func (f *flow) write(to types.Object, v value) {
	if to != nil {
		f.written[to] = append(f.written[to], v)
	}
}

func (f *flow) literal(n *ast.CompositeLit) {
	fields, ok := f.info.Types[n].Type.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for i, element := range n.Elts {
		if pair, keyed := element.(*ast.KeyValueExpr); keyed {
			f.write(f.object(pair.Key), value{pair.Value, 0})
			continue
		}
		f.write(fields.Field(i), value{element, 0})
	}
}

func (f *flow) assign(left, right []ast.Expr) {
	for i, l := range left {
		switch {
		case len(left) == len(right):
			f.write(f.object(l), value{right[i], 0})
		case len(right) == 1:
			f.write(f.object(l), value{right[0], i})
		}
	}
}

func (f *flow) call(n *ast.CallExpr) {
	callee := f.callee(n)
	if callee == nil {
		return
	}
	f.calls[callee] = append(f.calls[callee], n)
	parameters := callee.Signature().Params()
	for i := range min(parameters.Len(), len(n.Args)) {
		f.write(parameters.At(i), value{n.Args[i], 0})
	}
}

// returns notes what a function returns. A function inside of it is another
// one.
func (f *flow) returns(function *ast.FuncDecl) {
	object, ok := f.info.Defs[function.Name].(*types.Func)
	if !ok || function.Body == nil {
		return
	}
	results := make([][]value, object.Signature().Results().Len())
	ast.Inspect(function.Body, func(n ast.Node) bool {
		if _, inner := n.(*ast.FuncLit); inner {
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
	f.results[object] = results
}

// callee is the function that is called, when that is known.
func (f *flow) callee(n *ast.CallExpr) *types.Func {
	function, _ := f.object(ast.Unparen(n.Fun)).(*types.Func)
	if function == nil {
		return nil
	}
	return function.Origin()
}

// object is what a name stands for, or the field or method that is selected.
func (f *flow) object(e ast.Expr) types.Object {
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

// found are the strings that something can be, each with a place that says so.
type found map[string]string

// strings returns every string that is written to the variable, field or
// parameter, from wherever that may come. A value that is made when the program
// runs is an error, because then nobody can know them all.
func (f *flow) strings(of types.Object) (found, error) {
	t := &trace{flow: f, seen: map[types.Object]bool{}, found: found{}}
	if err := t.object(of); err != nil {
		return nil, err
	}
	return t.found, nil
}

// trace follows a value back to the strings that it can be. It ends at values of
// the types of which a catalogue has all values.
type trace struct {
	*flow
	seen  map[types.Object]bool
	found found
}

// catalogued reports whether a catalogue has all values of the type.
func (f *flow) catalogued(t types.Type) bool {
	return t != nil && slices.Contains(f.catalogues, t.String())
}

func (t *trace) object(of types.Object) error {
	if t.seen[of] {
		return nil
	}
	t.seen[of] = true
	for _, v := range t.written[of] {
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
		if text := constant.StringVal(typed.Value); text != "" { // "" means none
			t.found[text] = t.fset.Position(e.Pos()).String()
		}
		return nil
	}
	if called, ok := e.(*ast.CallExpr); ok && (!t.catalogued(typed.Type) || t.info.Types[called.Fun].IsType()) {
		return t.result(called, v.result)
	}
	if t.catalogued(typed.Type) {
		return nil // the catalogue has all of them
	}
	if variable, ok := t.flow.object(e).(*types.Var); ok && len(t.written[variable]) > 0 {
		return t.object(variable)
	}
	return fmt.Errorf("%s: a reason or a type is no constant here, so the table cannot be complete", t.fset.Position(e.Pos()))
}

// result follows what a call returns, or a conversion converts.
func (t *trace) result(n *ast.CallExpr, i int) error {
	if t.info.Types[n.Fun].IsType() {
		return t.value(value{n.Args[0], 0})
	}
	callee := t.callee(n)
	if callee != nil && callee.FullName() == "cmp.Or" {
		for _, argument := range n.Args {
			if err := t.value(value{argument, 0}); err != nil {
				return err
			}
		}
		return nil
	}
	results, ours := t.results[callee]
	if callee == nil || !ours {
		return fmt.Errorf("%s: a reason or a type comes from a function that is not ours, so the table cannot be complete", t.fset.Position(n.Pos()))
	}
	for _, v := range results[i] {
		if err := t.value(v); err != nil {
			return err
		}
	}
	return nil
}

// pairs returns what a function's two parameters can be together: callers that
// only pass on what they are given are followed to theirs. Where the first is
// no constant, it is "". What the second takes from except is left out.
func (f *flow) pairs(function *types.Func, first, second int, except types.Object) (map[[2]string]string, error) {
	all := map[[2]string]string{}
	for _, n := range f.calls[function] {
		a, b := n.Args[first], n.Args[second]
		if caller, i, j := f.passedOn(a, b); caller != nil {
			inner, err := f.pairs(caller, i, j, except)
			if err != nil {
				return nil, err
			}
			for pair, place := range inner {
				all[pair] = place
			}
			continue
		}
		t := &trace{flow: f, seen: map[types.Object]bool{except: true}, found: found{}}
		if err := t.value(value{b, 0}); err != nil {
			return nil, err
		}
		kind := ""
		if typed := f.info.Types[a]; typed.Value != nil {
			kind = constant.StringVal(typed.Value)
		}
		for reason, place := range t.found {
			all[[2]string{kind, reason}] = place
		}
	}
	return all, nil
}

// passedOn returns the function of which both expressions are parameters, and
// which ones; nil when there is none.
func (f *flow) passedOn(a, b ast.Expr) (caller *types.Func, i, j int) {
	for function := range f.results {
		parameters := slices.Collect(function.Signature().Params().Variables())
		i = slices.IndexFunc(parameters, func(p *types.Var) bool { return p == f.object(a) })
		j = slices.IndexFunc(parameters, func(p *types.Var) bool { return p == f.object(b) })
		if i >= 0 && j >= 0 {
			return function, i, j
		}
	}
	return nil, 0, 0
}
