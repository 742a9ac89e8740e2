package main

import (
	"go/ast"
	"go/parser"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parse returns the data flow of a package. The package has the type condition,
// and the function set if the text calls it. The type entry is catalogued.
func parse(t *testing.T, text string) (*dataFlow, *types.Package) {
	t.Helper()
	text = "package p\ntype condition struct{ kind, reason string }\n" + text
	if strings.Contains(text, "set(") {
		text += "\nfunc set(kind, reason string) condition { return condition{kind: kind, reason: reason} }"
	}
	s := newSource()
	file, err := parser.ParseFile(s.fset, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&types.Config{}).Check("p", s.fset, []*ast.File{file}, s.info)
	if err != nil {
		t.Fatal(err)
	}
	s.files["p"] = []*ast.File{file}
	return newDataFlow(s, "p.entry"), p
}

// reasonField returns the field reason of the type condition.
func reasonField(p *types.Package) types.Object {
	return p.Scope().Lookup("condition").Type().Underlying().(*types.Struct).Field(1)
}

func TestReasonIsFoundForEveryWayToSetACondition(t *testing.T) {
	for name, text := range map[string]string{
		"constant":                     `const want = "Want"; func f() { set("k", want) }`,
		"conversion":                   `type word string; const want word = "Want"; func f() { set("k", string(want)) }`,
		"concatenated constants":       `func f() { set("k", "Wa" + "nt") }`,
		"composite literal":            `var c = condition{"k", "Want"}`,
		"assignment to a field":        `func f() { var c condition; c.kind, c.reason = "k", "Want" }`,
		"local variable":               `func f() { r := "Want"; set("k", r) }`,
		"loop over a literal":          `func f() { for _, r := range []string{"Want"} { set("k", r) } }`,
		"parameter":                    `func g(r string) { set("k", r) }; func f() { g("Want") }`,
		"result":                       `func g() string { return "Want" }; func f() { set("k", g()) }`,
		"one of several results":       `func g() (int, string) { return 1, "Want" }; func f() { _, r := g(); set("k", r) }`,
		"forwarded results":            `func h() (int, string) { return 1, "Want" }; func g() (int, string) { return h() }; func f() { _, r := g(); set("k", r) }`,
		"field of another struct":      `type problem struct { text, reason string }; func g() *problem { return &problem{"t", "Want"} }; func f() { set("k", g().reason) }`,
		"result of a method":           `type problem int; func (problem) why() string { return "Want" }; func f(p problem) { set("k", p.why()) }`,
		"next to a catalogue":          `type entry string; func g(e entry) string { return string(e) }; func f(e entry) { set("k", g(e)); set("k", "Want") }`,
		"function with type arguments": `func g[T any](_ T, r string) { set("k", r) }; func f() { g(1, "Want") }`,
	} {
		t.Run(name, func(t *testing.T) {
			f, p := parse(t, text)
			got, err := f.strings(reasonField(p))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"Want"}, slices.Collect(maps.Keys(got))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestReasonThatIsNotAConstantIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"computed at run time":                  `func f(s string) { set("k", "Not" + s) }`,
		"parameter of a function without calls": `func F(s string) { set("k", s) }`,
		"result of a function value":            `func f(g func() string) { set("k", g()) }`,
		"element of a list":                     `func f(list []string) { set("k", list[0]) }`,
	} {
		t.Run(name, func(t *testing.T) {
			f, p := parse(t, text)
			if got, err := f.strings(reasonField(p)); err == nil || !strings.Contains(err.Error(), "cannot list all types and reasons") {
				t.Errorf("got %v and error %v, want an error", got, err)
			}
		})
	}
}

func TestEventsHaveTheTypesAndReasonsOfAllCallers(t *testing.T) {
	f, p := parse(t, `
func emit(kind, reason string) { set(kind, reason) }
type attempt struct { event string }
func fail(a attempt) { emit("Warning", a.event) }
func change(kind string, c condition) { set(kind, c.reason) }
func f(bad bool) {
	emit("Normal", "Made")
	fail(attempt{"Failed"})
	kind := "Normal"
	if bad { kind = "Warning" }
	set(kind, "Step")
	change("Warning", condition{})
}`)
	set := p.Scope().Lookup("set").(*types.Func)
	got, err := f.events(set, 0, 1, reasonField(p))
	if err != nil {
		t.Fatal(err)
	}
	events := map[eventKey]bool{}
	for event := range got {
		events[event] = true
	}
	want := map[eventKey]bool{{"Normal", "Made"}: true, {"Warning", "Failed"}: true, {"", "Step"}: true}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
