package main

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A text with this many "of" in 1,000 words has chains of genitives, such as "the pods of
// the connectors" instead of "connector pods".
const (
	maxPageDensity    = 18
	maxCommentDensity = 28
)

// minDensityWords excludes texts that are too short to judge.
const minDensityWords = 300

var word = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)

// sample counts words.
type sample struct{ of, words int }

// add counts each code span as one word.
func (s *sample) add(text string) {
	for _, w := range word.FindAllString(codeSpan.ReplaceAllString(text, " x "), -1) {
		s.words++
		if strings.EqualFold(w, "of") {
			s.of++
		}
	}
}

// check returns a finding if the text has the density or more.
func (s sample) check(path string, limit int) []finding {
	if s.words < minDensityWords || s.of*1000 < limit*s.words {
		return nil
	}
	return []finding{{path, 0, fmt.Sprintf(`%.1f "of" in 1,000 words, want less than %d; replace genitive chains`, float64(s.of*1000)/float64(s.words), limit)}}
}

// checkDensity reports hand-written pages, introductions to generated pages, and
// packages whose comments have too many genitives.
func checkDensity(files []file) []finding {
	var findings []finding
	packages := map[string]*sample{}
	for _, f := range files {
		switch {
		case path.Ext(f.path) == ".md" && !slices.Contains(generatedPages, f.path):
			var s sample
			s.add(newPage(f).prose(true))
			findings = append(findings, s.check(f.path, maxPageDensity)...)
		case path.Ext(f.path) == ".go" && !strings.HasPrefix(path.Base(f.path), "zz_generated"):
			directory := path.Dir(f.path)
			if packages[directory] == nil {
				packages[directory] = &sample{}
			}
			for _, comment := range comments(f.content) {
				packages[directory].add(comment)
			}
		}
	}
	for directory, s := range packages {
		findings = append(findings, s.check(directory, maxCommentDensity)...)
	}
	slices.SortFunc(findings, func(a, b finding) int { return cmp.Compare(a.path, b.path) })
	return findings
}
