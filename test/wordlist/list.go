package main

import (
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// list is the content of words.yaml.
type list struct {
	Terms []*term  `json:"terms"`
	Allow []permit `json:"allow"`
}

// term is a retired term.
type term struct {
	Term string `json:"term"`
	Use  string `json:"use"`

	expression *regexp.Regexp
}

// permit names a text in which retired terms stay.
type permit struct {
	Path string `json:"path"`
	Text string `json:"text"`
	Why  string `json:"why"`
}

// covers reports whether the permit is about the file.
func (p permit) covers(path string) bool {
	return path == p.Path || strings.HasPrefix(path, p.Path+"/")
}

// betweenWords matches a space, and the end of a line in a comment.
const betweenWords = `[\s#]+`

// parseList reads a list and compiles its terms.
func parseList(content []byte) (*list, error) {
	l := &list{}
	if err := yaml.UnmarshalStrict(content, l); err != nil {
		return nil, fmt.Errorf("parse the word list: %w", err)
	}
	for _, t := range l.Terms {
		expression, err := regexp.Compile(`(?i)\b(?:` + strings.ReplaceAll(t.Term, " ", betweenWords) + `)\b`)
		if err != nil {
			return nil, fmt.Errorf("term %q: %w", t.Term, err)
		}
		if t.Use == "" {
			return nil, fmt.Errorf("term %q: no replacement", t.Term)
		}
		t.expression = expression
	}
	for _, p := range l.Allow {
		if p.Why == "" {
			return nil, fmt.Errorf("allow %q: no reason", p.Path)
		}
	}
	return l, nil
}

// skips reports whether everything in the file is allowed.
func (l *list) skips(path string) bool {
	for _, p := range l.Allow {
		if p.Text == "" && p.covers(path) {
			return true
		}
	}
	return false
}

// checkAll returns the retired terms in all files.
func (l *list) checkAll(files []file) []finding {
	var findings []finding
	for _, f := range files {
		if !l.skips(f.path) {
			findings = append(findings, l.check(f.path, textsOf(f.path, f.content))...)
		}
	}
	return findings
}

// check returns the retired terms in the texts of a file, in their order.
func (l *list) check(path string, texts []text) []finding {
	var findings []finding
	for _, t := range texts {
		checked := l.withoutAllowed(path, t.text)
		for _, term := range l.Terms {
			for _, at := range term.expression.FindAllStringIndex(checked, -1) {
				line := t.line + strings.Count(checked[:at[0]], "\n")
				found := strings.Join(strings.Fields(strings.ReplaceAll(checked[at[0]:at[1]], "#", " ")), " ")
				findings = append(findings, finding{path, line, fmt.Sprintf("%q is retired; use: %s", found, term.Use)})
			}
		}
	}
	return findings
}

// withoutAllowed removes the allowed parts of a text.
func (l *list) withoutAllowed(path, text string) string {
	for _, p := range l.Allow {
		if p.Text != "" && p.covers(path) {
			text = strings.ReplaceAll(text, p.Text, "")
		}
	}
	return text
}
