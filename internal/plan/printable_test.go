package plan_test

import (
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// hostile are paths that do something to a terminal, or forge a line or a cell.
const hostile = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: infra}
spec:
  parentRefs: [{name: g}]
  rules:
  - matches: [{path: {type: RegularExpression, value: "/[^x]*|\e\\[2J\u009b2J\u202e\tforged\nforged"}}]
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {type: PathPrefix, value: "/%0Aforged%1B%5B2J%C2%9B%E2%80%AE%09forged"}}]
    backendRefs: [{name: "no\nforged", port: 80}]
`

// withRoute is the Gateway of compared with another route.
func withRoute(annotations, route string) string {
	documents := strings.Split(compared("new.example.com", annotations), "---\n")
	documents[2] = route
	return strings.Join(documents, "---\n")
}

// wantHarmless asks for visible escapes, and for no raw character beside those
// of lines.
func wantHarmless(t *testing.T, text string, escapes ...string) {
	t.Helper()
	for _, want := range escapes {
		if !strings.Contains(text, want) {
			t.Errorf("it does not show %s:\n%s", want, text)
		}
	}
	if i := strings.IndexAny(text, "\x1b\u009b\u202e\t\r"); i >= 0 {
		t.Errorf("raw character at %d: %q", i, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "forged") {
			t.Errorf("a path makes the line %q", line)
		}
	}
}

func TestTablesShowWhatDoesNotPrint(t *testing.T) {
	p := planOf(t, withRoute("", hostile))
	var table, why strings.Builder
	if err := p.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	wantHarmless(t, table.String(), `\x1b\[2J`, `\u009b2J`, `\u202e`, `\tforged`, `\nforged`, `no\nforged`)

	if err := p.Explain(gateway.Request{Host: "new.example.com", Path: "/\nforged\x1b[2J\u009b\u202e\tforged"}).WriteTable(&why); err != nil {
		t.Fatal(err)
	}
	wantHarmless(t, why.String(), `\x1b\[2J`, `/\nforged\x1b[2J\u009b\u202e\tforged`)
}

func TestDifferencesShowWhatDoesNotPrint(t *testing.T) {
	for name, manifests := range map[string]func(*cloud) string{
		"a configuration": func(c *cloud) string { return withRoute("", hostile) + c.record() },
		"a note": func(c *cloud) string {
			if err := c.DeleteTunnel(t.Context(), c.id); err != nil {
				t.Fatal(err)
			}
			return compared("new.example.com", "") + object(`tunnelID: "a\nforged\e[2J"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t)
			p := planOf(t, manifests(c))
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			var out, coloured strings.Builder
			if err := p.WriteDiff(&out, false); err != nil {
				t.Fatal(err)
			}
			wantHarmless(t, out.String(), `[2J`, `nforged`)
			if err := p.WriteDiff(&coloured, true); err != nil {
				t.Fatal(err)
			}
			ours := strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[36m", "", "\x1b[m", "")
			if plain := ours.Replace(coloured.String()); plain != out.String() {
				t.Errorf("with colours it is\n%q\nand without\n%q", plain, out.String())
			}
		})
	}
}
