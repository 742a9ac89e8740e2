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
	line int // where it begins
	text string
}

// notText are files that contain no prose.
var notText = []string{"go.mod", "go.sum"}

// textsOf returns the texts in a file: comments, identifiers and strings in a Go file,
// and all of any other text file.
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

// goTexts returns the comments, strings and identifiers in a Go file. Adjacent line
// comments form one text, because a term can be broken across lines.
func goTexts(content []byte) []text {
	var files token.FileSet
	file := files.AddFile("", -1, len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	var texts []text
	for {
		position, kind, literal := s.Scan()
		line := file.Line(position)
		switch kind {
		case token.EOF:
			return texts
		case token.COMMENT:
			literal = strings.TrimPrefix(literal, "//")
			if last := len(texts) - 1; last >= 0 && texts[last].line+strings.Count(texts[last].text, "\n")+1 == line {
				texts[last].text += "\n" + literal
				continue
			}
			texts = append(texts, text{line, literal})
		case token.STRING:
			texts = append(texts, text{line, literal})
		case token.IDENT:
			texts = append(texts, text{line, splitIdentifier(literal)})
		default: // operators, keywords and numbers contain no prose
		}
	}
}

var (
	hump    = regexp.MustCompile(`([\p{Ll}\d])(\p{Lu})`)
	acronym = regexp.MustCompile(`(\p{Lu})(\p{Lu}\p{Ll})`)
)

// splitIdentifier separates an identifier's words by spaces.
func splitIdentifier(name string) string {
	name = hump.ReplaceAllString(name, "$1 $2")
	name = acronym.ReplaceAllString(name, "$1 $2")
	return strings.ReplaceAll(name, "_", " ")
}
