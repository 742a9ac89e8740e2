package markdown

import "testing"

func TestTextIsEscapedForMarkdown(t *testing.T) {
	for text, want := range map[string]string{
		"two\n lines":   "two lines",
		"a|b":           `a\|b`,
		"*.example.com": `\*.example.com`,
		"<name>":        `\<name>`,
		`\Q`:            `\\Q`,
		"rate_limited":  "rate_limited",
		"'_' or __x":    `'\_' or \_\_x`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestCellsKeepMarkdown(t *testing.T) {
	if got, want := Cell("[a](b.md)\n `c|d`"), "[a](b.md) `c\\|d`"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLinksHaveTheAnchorsOfGitHub(t *testing.T) {
	for heading, want := range map[string]string{
		"Problems of a tunnel": "[Problems of a tunnel](#problems-of-a-tunnel)",
		"`spec.list[]`":        "[`spec.list[]`](#speclist)",
	} {
		if got := Link(heading); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
