package main

import (
	"go/scanner"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// text is a piece of a file that people read.
type text struct {
	line int // of its first line
	text string
}

// notText are files that contain no prose.
var notText = []string{"go.mod", "go.sum"}

// textsOf returns the texts of a file: comments, identifiers and strings of a Go
// file, and the whole of any other text file.
func textsOf(path string, content []byte) []text {
	switch {
	case slices.Contains(notText, filepath.Base(path)) || !utf8.Valid(content):
		return nil
	case filepath.Ext(path) == ".go":
		return goTexts(content)
	default:
		return []text{{1, string(content)}}
	}
}

// comments returns the comments of a Go file without directives.
func comments(content []byte) []string {
	var result []string
	scan(content, func(_ int, kind token.Token, literal string) {
		if body, ok := strings.CutPrefix(literal, "// "); ok && kind == token.COMMENT && !strings.HasPrefix(body, "+") {
			result = append(result, body)
		}
	})
	return result
}

// scan calls f for each token of a Go file with its line.
func scan(content []byte, f func(line int, kind token.Token, literal string)) {
	var files token.FileSet
	file := files.AddFile("", -1, len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	for {
		position, kind, literal := s.Scan()
		if kind == token.EOF {
			return
		}
		f(file.Line(position), kind, literal)
	}
}

// goTexts returns the comments, strings and identifiers of a Go file. Adjacent
// line comments form one text, because a term can be broken across lines.
func goTexts(content []byte) []text {
	var texts []text
	scan(content, func(line int, kind token.Token, literal string) {
		switch kind {
		case token.COMMENT:
			literal = strings.TrimPrefix(literal, "//")
			if last := len(texts) - 1; last >= 0 && texts[last].line+strings.Count(texts[last].text, "\n")+1 == line {
				texts[last].text += "\n" + literal
				return
			}
			texts = append(texts, text{line, literal})
		case token.STRING:
			texts = append(texts, text{line, literal})
		case token.IDENT:
			texts = append(texts, text{line, splitIdentifier(literal)})
		default: // operators, keywords and numbers contain no prose
		}
	})
	return texts
}

var (
	hump    = regexp.MustCompile(`([\p{Ll}\d])(\p{Lu})`)
	acronym = regexp.MustCompile(`(\p{Lu})(\p{Lu}\p{Ll})`)
)

// splitIdentifier separates the words of an identifier by spaces.
func splitIdentifier(name string) string {
	name = hump.ReplaceAllString(name, "$1 $2")
	name = acronym.ReplaceAllString(name, "$1 $2")
	return strings.ReplaceAll(name, "_", " ")
}
