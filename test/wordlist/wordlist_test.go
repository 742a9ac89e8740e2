package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const testList = `
terms:
  - {term: 'foreign edits?', use: external change}
  - {term: 'keepers?', use: the name of the object}
allow:
  - {path: quotes.md, text: 'the "keeper" of RFC 1', why: a quotation}
  - {path: copied, why: text of another project}
`

func TestCheckReportsRetiredTerms(t *testing.T) {
	for name, test := range map[string]struct {
		path, content string
		want          []string
	}{
		"a word in Markdown":             {"a.md", "one\nThe Keeper waits.\n", []string{`a.md:2: "Keeper" is retired; use: the name of the object`}},
		"a part of another word":         {"a.md", "a timekeeper\n", nil},
		"a term across two lines":        {"a.yaml", "# a foreign\n# x\n# foreign\n#   edit\n", []string{`a.yaml:3: "foreign edit" is retired; use: external change`}},
		"a term across lines of comment": {"a.go", "package a\n\n// A foreign\n// edit\nvar x int\n", []string{`a.go:3: "foreign edit" is retired; use: external change`}},
		"a string in Go":                 {"a.go", "package a\n\nvar x = \"two foreign edits\"\n", []string{`a.go:3: "foreign edits" is retired; use: external change`}},
		"an identifier in Go":            {"a.go", "package a\n\nvar findForeignEdit, aForeign_edit int\n", []string{`a.go:3: "Foreign Edit" is retired; use: external change`, `a.go:3: "Foreign edit" is retired; use: external change`}},
		"an allowed quotation":           {"quotes.md", "the \"keeper\" of RFC 1, a keeper\n", []string{`quotes.md:1: "keeper" is retired; use: the name of the object`}},
		"a copied file":                  {"copied/a.md", "keeper\n", nil},
		"a binary file":                  {"a.png", "\xff\xfe keeper\n", nil},
		"checksums":                      {"go.sum", "keeper\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := parseList([]byte(testList))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range l.checkAll([]file{{test.path, []byte(test.content)}}) {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseListRefusesIncompleteEntries(t *testing.T) {
	for name, content := range map[string]string{
		"a term that is no expression":  "terms: [{term: '(', use: x}]",
		"a term without a replacement":  "terms: [{term: x}]",
		"an exception without a reason": "allow: [{path: x}]",
		"an unknown field":              "words: []",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseList([]byte(content)); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestRunChecksNewFilesAndSkipsIgnoredFiles(t *testing.T) {
	root := t.TempDir()
	for path, content := range map[string]string{".gitignore": "ignored.md\n", "new.md": "a stranger\n", "ignored.md": "a stranger\n"} {
		if err := os.WriteFile(filepath.Join(root, path), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "git", "init", "-q")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	findings, err := run(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 1 || findings[0].path != "new.md" {
		t.Errorf("findings %v, want one in new.md", findings)
	}
}
