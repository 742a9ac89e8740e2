package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parse checks a package that imports nothing.
func parse(t *testing.T, text string) (*flow, *types.Package) {
	t.Helper()
	s := &source{fset: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	text = "package p\ntype condition struct{ kind, reason string }\n" + text
	if strings.Contains(text, "set(") {
		text += "\nfunc set(kind, reason string) condition { return condition{kind: kind, reason: reason} }"
	}
	file, err := parser.ParseFile(s.fset, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&types.Config{}).Check("p", s.fset, []*ast.File{file}, s.info)
	if err != nil {
		t.Fatal(err)
	}
	s.files = map[string][]*ast.File{"p": {file}}
	return newFlow(s, "p.entry"), p
}

// fieldOf returns a field of the condition.
func fieldOf(p *types.Package, i int) types.Object {
	return p.Scope().Lookup("condition").Type().Underlying().(*types.Struct).Field(i)
}

// TestStrings has every way on which a reason gets from where it is written to
// the condition.
func TestStrings(t *testing.T) {
	for way, text := range map[string]string{
		"constant":           `const want = "Want"; func f() { set("k", want) }`,
		"conversion":         `type word string; const want word = "Want"; func f() { set("k", string(want)) }`,
		"joined":             `func f() { set("k", "Wa" + "nt") }`,
		"literal":            `var c = condition{"k", "Want"}`,
		"assigned":           `func f() { var c condition; c.kind, c.reason = "k", "Want" }`,
		"local variable":     `func f() { r := "Want"; set("k", r) }`,
		"of a list":          `func f() { for _, r := range []string{"Want"} { set("k", r) } }`,
		"handed on":          `func g(r string) { set("k", r) }; func f() { g("Want") }`,
		"returned":           `func g() string { return "Want" }; func f() { set("k", g()) }`,
		"one of results":     `func g() (int, string) { return 1, "Want" }; func f() { _, r := g(); set("k", r) }`,
		"result handed on":   `func h() (int, string) { return 1, "Want" }; func g() (int, string) { return h() }; func f() { _, r := g(); set("k", r) }`,
		"of another struct":  `type problem struct { text, reason string }; func g() *problem { return &problem{"t", "Want"} }; func f() { set("k", g().reason) }`,
		"of a method":        `type problem int; func (problem) why() string { return "Want" }; func f(p problem) { set("k", p.why()) }`,
		"beside a catalogue": `type entry string; func g(e entry) string { return string(e) }; func f(e entry) { set("k", g(e)); set("k", "Want") }`,
		"of a type argument": `func g[T any](_ T, r string) { set("k", r) }; func f() { g(1, "Want") }`,
	} {
		t.Run(way, func(t *testing.T) {
			f, p := parse(t, text)
			got, err := f.strings(fieldOf(p, 1))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"Want"}, slices.Collect(maps.Keys(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStringsUnknown has what nobody can list.
func TestStringsUnknown(t *testing.T) {
	for what, text := range map[string]string{
		"made at run time":        `func f(s string) { set("k", "Not" + s) }`,
		"of nobody's parameter":   `func F(s string) { set("k", s) }`,
		"of a function's value":   `func f(g func() string) { set("k", g()) }`,
		"of an element of a list": `func f(list []string) { set("k", list[0]) }`,
	} {
		t.Run(what, func(t *testing.T) {
			f, p := parse(t, text)
			if got, err := f.strings(fieldOf(p, 1)); err == nil || !strings.Contains(err.Error(), "cannot be complete") {
				t.Errorf("got %v and error %v, want one that says so", got, err)
			}
		})
	}
}

func TestPairs(t *testing.T) {
	f, p := parse(t, `
func tell(kind, reason string) { set(kind, reason) }
type attempt struct { event string }
func fail(a attempt) { tell("Warning", a.event) }
func change(kind string, c condition) { set(kind, c.reason) }
func f(bad bool) {
	tell("Normal", "Made")
	fail(attempt{"Failed"})
	kind := "Normal"
	if bad { kind = "Warning" }
	set(kind, "Step")
	change("Warning", condition{})
}`)
	set := p.Scope().Lookup("set").(*types.Func)
	got, err := f.pairs(set, 0, 1, fieldOf(p, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := map[[2]string]bool{{"Normal", "Made"}: true, {"Warning", "Failed"}: true, {"", "Step"}: true}
	if diff := cmp.Diff(want, keys(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func keys(m map[[2]string]string) map[[2]string]bool {
	all := map[[2]string]bool{}
	for k := range m {
		all[k] = true
	}
	return all
}
