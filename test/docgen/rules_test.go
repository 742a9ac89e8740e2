package main

import (
	"os"
	"strings"
	"testing"
)

// writeCase writes a golden case to an empty directory and makes the directory the
// current one.
func writeCase(t *testing.T, firstLine string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/wildcard.in.yaml", []byte(firstLine+"\nkind: Gateway\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestGoldenCasesAreInTheirRulesSections(t *testing.T) {
	writeCase(t, "# rule: 3 *.example.com conflicts with itself")
	pages, err := rulesPages()
	if err != nil {
		t.Fatal(err)
	}
	want := "## " + ruleSections[2].title + "\n\n| Rule | Case |\n|---|---|\n" +
		`| \*.example.com conflicts with itself | [wildcard](../internal/gateway/testdata/wildcard.in.yaml) |`
	if !strings.Contains(pages[0].text, want) {
		t.Errorf("got:\n%s\nwant:\n%s", pages[0].text, want)
	}
}

func TestExamplesAreGoldenCases(t *testing.T) {
	for _, section := range ruleSections {
		for _, name := range section.examples {
			if _, err := os.Stat("../../internal/gateway/testdata/" + name + ".in.yaml"); err != nil {
				t.Errorf("section %s: %v", section.key, err)
			}
		}
	}
}

func TestGoldenCaseRequiresARuleInAnExistingSection(t *testing.T) {
	for line, want := range map[string]string{
		"# a comment":    "the first line must be",
		"# rule: 99 new": `section "99" does not exist`,
	} {
		writeCase(t, line)
		if _, err := rulesPages(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %q", line, err, want)
		}
	}
}

func TestRulesRequireGoldenCases(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := rulesPages(); err == nil {
		t.Error("got no error in a directory without golden cases")
	}
}
