package plan_test

import (
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// hostile has paths with terminal escape sequences, line breaks and tabs.
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

// withRoute returns the Gateway from gatewayFor with another route.
func withRoute(annotations, route string) string {
	documents := strings.Split(gatewayFor("new.example.com", annotations), "---\n")
	documents[2] = route
	return strings.Join(documents, "---\n")
}

// wantHarmless checks that text contains the escapes, and no unprintable character
// except line breaks.
func wantHarmless(t *testing.T, text string, escapes ...string) {
	t.Helper()
	for _, want := range escapes {
		if !strings.Contains(text, want) {
			t.Errorf("the output does not contain %s:\n%s", want, text)
		}
	}
	if i := strings.IndexAny(text, "\x1b\u009b\u202e\t\r"); i >= 0 {
		t.Errorf("unescaped character at %d: %q", i, text)
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "forged") {
			t.Errorf("a path forged the line %q", line)
		}
	}
}

func TestTablesEscapeUnprintableCharacters(t *testing.T) {
	p := planOf(t, withRoute("", hostile))
	var table, why strings.Builder
	if err := p.WriteTable(&table, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	wantHarmless(t, table.String(), `\x1b\[2J`, `\u009b2J`, `\u202e`, `\tforged`, `\nforged`, `no\nforged`)

	if err := p.Explain(routing.Request{Host: "new.example.com", Path: "/\nforged\x1b[2J\u009b\u202e\tforged"}).WriteTable(&why, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	wantHarmless(t, why.String(), `\x1b\[2J`, `/\nforged\x1b[2J\u009b\u202e\tforged`)
}

func TestDiffEscapesUnprintableCharacters(t *testing.T) {
	for name, manifests := range map[string]func(*account) string{
		"a configuration": func(c *account) string { return withRoute("", hostile) + c.recorded() },
		"a note": func(c *account) string {
			if err := c.DeleteTunnel(t.Context(), c.id); err != nil {
				t.Fatal(err)
			}
			return gatewayFor("new.example.com", "") + tunnelObject(`tunnelID: "a\nforged\e[2J"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newAccount(t)
			p := planOf(t, manifests(c))
			if err := p.Compare(t.Context(), c.open); err != nil {
				t.Fatal(err)
			}
			var out, colored strings.Builder
			if err := p.WriteDiff(&out, false); err != nil {
				t.Fatal(err)
			}
			wantHarmless(t, out.String(), `[2J`, `nforged`)
			if err := p.WriteDiff(&colored, true); err != nil {
				t.Fatal(err)
			}
			colors := strings.NewReplacer("\x1b[1m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[36m", "", "\x1b[m", "")
			if plain := colors.Replace(colored.String()); plain != out.String() {
				t.Errorf("the output with colors removed is\n%q\nwant\n%q", plain, out.String())
			}
		})
	}
}
