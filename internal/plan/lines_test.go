package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(text string) []string { return slices.Collect(strings.Lines(text)) }

func TestUnifiedLines(t *testing.T) {
	rule := func(hostname, path string) string {
		return fmt.Sprintf("- hostname: %s\n  path: %s\n  service: http://web\n", hostname, path)
	}
	many := func(from, to int) string {
		var text strings.Builder
		for i := from; i < to; i++ {
			fmt.Fprintf(&text, "- %d\n", i)
		}
		return text.String()
	}
	for name, test := range map[string]struct{ a, b, want string }{
		"nothing":     {"", "", ""},
		"the same":    {rule("h", "/a"), rule("h", "/a"), ""},
		"put in":      {"", "- a\n", "@@ -0,0 +1 @@\n+- a\n"},
		"taken out":   {"- a\n- b\n", "", "@@ -1,2 +0,0 @@\n-- a\n-- b\n"},
		"another one": {"- a\n", "- b\n", "@@ -1 +1 @@\n-- a\n+- b\n"},
		// Not the end of one and the beginning of the next.
		"a whole rule before one like it": {rule("h", "/a"), rule("h", "/0") + rule("h", "/a"),
			"@@ -1,3 +1,6 @@\n+- hostname: h\n+  path: /0\n+  service: http://web\n - hostname: h\n   path: /a\n   service: http://web\n"},
		"a line of a rule": {rule("h", "/a") + rule("h", "/b"), rule("h", "/a") + rule("h", "/c"),
			"@@ -2,5 +2,5 @@\n   path: /a\n   service: http://web\n - hostname: h\n-  path: /b\n+  path: /c\n   service: http://web\n"},
		"changes that are far apart": {many(0, 20), many(1, 19), "@@ -1,4 +1,3 @@\n-- 0\n - 1\n - 2\n - 3\n@@ -17,4 +16,3 @@\n - 16\n - 17\n - 18\n-- 19\n"},
		"changes that are just close enough": {"- x\n" + many(0, 6) + "- x\n", many(0, 6),
			"@@ -1,8 +1,6 @@\n-- x\n - 0\n - 1\n - 2\n - 3\n - 4\n - 5\n-- x\n"},
		"changes that are just not": {"- x\n" + many(0, 7) + "- x\n", many(0, 7),
			"@@ -1,4 +1,3 @@\n-- x\n - 0\n - 1\n - 2\n@@ -6,4 +5,3 @@\n - 4\n - 5\n - 6\n-- x\n"},
		"another order": {"- a\n- b\n- c\n- d\n", "- b\n- c\n- d\n- a\n", "@@ -1,4 +1,4 @@\n-- a\n - b\n - c\n - d\n+- a\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, unifiedLines(lines(test.a), lines(test.b))); diff != "" {
				t.Errorf("the diff differs (-want +got):\n%s", diff)
			}
		})
	}
}

// Whatever the texts are, the diff makes the one of the other.
func TestUnifiedLinesLeadThere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- not for security
	text := func() []string {
		var all []string
		for range random.IntN(40) {
			all = append(all, []string{"- a\n", "- b\n", "  c\n", "  d\n", fmt.Sprintf("- %d\n", random.IntN(30))}[random.IntN(5)])
		}
		return all
	}
	for range 2000 {
		a, b := text(), text()
		diff := unifiedLines(a, b)
		if got := patched(t, a, diff); !slices.Equal(got, b) {
			t.Fatalf("from %q to %q it leads to %q by\n%s", a, b, got, diff)
		}
		if (diff == "") != slices.Equal(a, b) {
			t.Fatalf("from %q to %q: %q", a, b, diff)
		}
	}
}

// patched carries out a diff, and holds its headers against its lines.
func patched(t *testing.T, a []string, diff string) []string {
	t.Helper()
	var out []string
	at := 0
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "@@") {
			from, to := place(t, strings.Fields(line)[1]), place(t, strings.Fields(line)[2])
			out = append(out, a[at:from]...)
			if at = from; len(out) != to {
				t.Fatalf("%q begins at line %d of the other text", line, len(out))
			}
			continue
		}
		if line[0] != '+' {
			if a[at] != line[1:] {
				t.Fatalf("line %d is %q, not %q", at, a[at], line)
			}
			at++
		}
		if line[0] != '-' {
			out = append(out, line[1:])
		}
	}
	return append(out, a[at:]...)
}

// place returns how many lines stand before what a header names.
func place(t *testing.T, header string) int {
	t.Helper()
	first, count := 0, 1
	if n, _ := fmt.Sscanf(header[1:], "%d,%d", &first, &count); n == 0 {
		t.Fatalf("header %q", header)
	}
	if count == 0 {
		return first
	}
	return first - 1
}
