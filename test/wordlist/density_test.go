package main

import (
	"strings"
	"testing"
)

func TestCheckDensity(t *testing.T) {
	words := func(of, all int) string { return strings.Repeat("of ", of) + strings.Repeat("a ", all-of) }
	for name, test := range map[string]struct {
		path, content string
		found         bool
	}{
		"a page below the limit":    {"a.md", words(17, 1000), false},
		"a page at the limit":       {"a.md", words(18, 1000), true},
		"a short page":              {"a.md", words(100, 299), false},
		"a generated page":          {"docs/flags.md", words(99, 1000), false},
		"an introduction":           {"test/docgen/flags.head.md", words(99, 1000), true},
		"code spans":                {"a.md", "`" + words(99, 1000) + "` " + words(0, 1000), false},
		"a package below the limit": {"a/a.go", "package a\n\n// " + words(27, 1000), false},
		"a package at the limit":    {"a/a.go", "package a\n\n// " + words(28, 1000), true},
		"directives":                {"a/a.go", "package a\n\n//go:generate " + words(99, 1000) + "\n// +optional " + words(99, 1000), false},
		"generated code":            {"a/zz_generated.a.go", "package a\n\n// " + words(99, 1000), false},
		"a string":                  {"a/a.go", "package a\n\nvar x = `// " + words(99, 1000) + "`", false},
	} {
		t.Run(name, func(t *testing.T) {
			if found := checked(checkDensity, test.path, test.content); (len(found) > 0) != test.found {
				t.Errorf("findings %v, want some: %t", found, test.found)
			}
		})
	}
}

func TestCheckDensityAddsFilesOfAPackage(t *testing.T) {
	half := []byte("package a\n\n// " + strings.Repeat("of ", 200))
	if found := checkDensity([]file{{"a/a.go", half}, {"a/b.go", half}}); len(found) != 1 || found[0].path != "a" {
		t.Errorf("findings %v, want one for the package", found)
	}
}
