package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checked returns the findings of a check for one file.
func checked(check func([]file) []finding, path, content string) []string {
	var found []string
	for _, f := range check([]file{{path, []byte(content)}}) {
		found = append(found, f.String())
	}
	return found
}

func TestCheckCommandNames(t *testing.T) {
	for name, test := range map[string]struct {
		path, content string
		found         bool
	}{
		"the plugin":                {"a.md", "Run `kubectl tunnel-gateway plan -f a`.", false},
		"the program":               {"a.md", "Run `tunnel-gateway plan -f a`.", true},
		"the program in a clone":    {"a.md", "bin/tunnel-gateway version", true},
		"its installation":          {"a.md", "install bin/tunnel-gateway ~/.local/bin/kubectl-tunnel_gateway", false},
		"the container's argument":  {"a.md", "`tunnel-gateway controller --help`", false},
		"a page for contributors":   {"docs/contributing.md", "bin/tunnel-gateway plan -f a", false},
		"a copy of a file":          {"a.md", "```yaml\nrun: tunnel-gateway plan\n```", false},
		"a plugin's other location": {"a.md", "sudo tunnel-gateway plan", true},
		"a generated page":          {"docs/rules.md", "bin/tunnel-gateway plan -f a", false},
	} {
		t.Run(name, func(t *testing.T) {
			if found := checked(checkCommandNames, test.path, test.content); (len(found) > 0) != test.found {
				t.Errorf("findings %v, want some: %t", found, test.found)
			}
		})
	}
}

func TestCheckTableCells(t *testing.T) {
	long, short := strings.Repeat("word ", maxCellWords+1), strings.Repeat("word ", maxCellWords)
	for name, test := range map[string]struct {
		path, content string
		found         bool
	}{
		"a short cell":           {"a.md", "| a | " + short + "|\n", false},
		"a long cell":            {"a.md", "| a | " + long + "|\n", true},
		"a pipe in code":         {"a.md", "| `a|b` | " + short + "|\n", false},
		"prose":                  {"a.md", long + "\n", false},
		"output in a code block": {"a.md", "```text\n| " + long + "|\n```\n", false},
		"a reference page":       {"docs/limits.md", "| " + long + "|\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			if found := checked(checkTableCells, test.path, test.content); (len(found) > 0) != test.found {
				t.Errorf("findings %v, want some: %t", found, test.found)
			}
		})
	}
}

func TestCheckPageLengths(t *testing.T) {
	words := func(n int) string { return strings.Repeat("word ", n) + "\n" }
	for name, test := range map[string]struct {
		path, content string
		want          []string
	}{
		"at the limit":        {"docs/day-2.md", words(600), nil},
		"above the limit":     {"docs/day-2.md", words(601), []string{"docs/day-2.md: 601 words, the maximum is 600"}},
		"code":                {"docs/day-2.md", words(600) + "```sh\n" + words(9) + "```\n", nil},
		"a comment":           {"docs/day-2.md", words(600) + "<!-- " + words(9) + "-->\n", nil},
		"a table that counts": {"docs/day-2.md", "| " + words(600), []string{"docs/day-2.md: 601 words, the maximum is 600"}},
		"another table":       {"README.md", words(700) + "| " + words(9), nil},
		"all pages together":  {"docs/a.md", words(maxPageWords + 1), []string{"docs: 65901 words on all pages together, the maximum is 65900"}},
		"the changelog":       {"CHANGELOG.md", words(maxPageWords + 1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, checked(checkPageLengths, test.path, test.content)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}
