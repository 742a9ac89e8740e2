package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// generatedPages are pages that a generator writes from the code. They are for looking
// things up, so they can be long.
var generatedPages = []string{
	"charts/tunnel-gateway/README.md",
	"docs/access-policy.md",
	"docs/conditions.md",
	"docs/configuration.md",
	"docs/conformance/tests.md",
	"docs/flags.md",
	"docs/metrics.md",
	"docs/rules.md",
	"docs/tunnel-reference.md",
}

// page is a hand-written Markdown file.
type page struct {
	path  string
	lines []pageLine
}

// pageLine is a line outside HTML comments.
type pageLine struct {
	number int
	text   string
	// language is what the fence around the line names, such as "sh".
	language string
	// isCode and isTable report whether the line belongs to a code block or a table.
	isCode, isTable bool
}

// htmlComment matches a comment, which no reader sees.
var htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)

// pagesOf returns the hand-written pages among the files, without introductions that a
// generator copies to its page.
func pagesOf(files []file) []page {
	var pages []page
	for _, f := range files {
		if path.Ext(f.path) == ".md" && !strings.HasSuffix(f.path, ".head.md") && !slices.Contains(generatedPages, f.path) {
			pages = append(pages, newPage(f))
		}
	}
	return pages
}

func newPage(f file) page {
	withoutComments := htmlComment.ReplaceAllStringFunc(string(f.content), func(comment string) string {
		return strings.Repeat("\n", strings.Count(comment, "\n"))
	})
	p := page{path: f.path}
	inBlock, language := false, ""
	for i, text := range strings.Split(withoutComments, "\n") {
		trimmed := strings.TrimSpace(text)
		info, isFence := strings.CutPrefix(trimmed, "```")
		isCode := isFence || inBlock
		if isFence && !inBlock {
			language = info
		}
		p.lines = append(p.lines, pageLine{i + 1, text, language, isCode, !isCode && strings.HasPrefix(trimmed, "|")})
		if isFence {
			inBlock = !inBlock
		}
		if !inBlock {
			language = ""
		}
	}
	return p
}

// prose returns the text outside code blocks and, without tables, outside tables.
func (p page) prose(tables bool) string {
	var b strings.Builder
	for _, line := range p.lines {
		if !line.isCode && (tables || !line.isTable) {
			b.WriteString(line.text + "\n")
		}
	}
	return b.String()
}
