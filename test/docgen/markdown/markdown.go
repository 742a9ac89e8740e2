// Package markdown formats texts and tables as Markdown, for the page generators.
package markdown

import (
	"regexp"
	"strings"
)

// lineWidth is the maximum line length in prose, in bytes.
const lineWidth = 120

var (
	// escaper escapes the characters that Markdown interprets anywhere in a text.
	escaper = strings.NewReplacer(`\`, `\\`, `|`, `\|`, `*`, `\*`, `<`, `\<`)
	// openingUnderscore matches an underscore that can begin an emphasis. Markdown
	// does not interpret an underscore after a letter or a digit.
	openingUnderscore = regexp.MustCompile(`(^|[^\p{L}\p{N}_])_+`)
)

// Escape converts plain text to Markdown on one line.
func Escape(text string) string {
	return openingUnderscore.ReplaceAllStringFunc(escaper.Replace(oneLine(text)), func(match string) string {
		return strings.ReplaceAll(match, "_", `\_`)
	})
}

// oneLine replaces line breaks and repeated spaces with one space.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Cell converts Markdown to table cell content.
func Cell(markdown string) string { return strings.ReplaceAll(oneLine(markdown), "|", `\|`) }

// Code formats text as code.
func Code(text string) string { return "`" + text + "`" }

// Table is a Markdown table. Its cells are Markdown without line breaks and
// without unescaped pipes.
type Table struct{ text strings.Builder }

// NewTable returns a table that has only a header.
func NewTable(header ...string) *Table {
	t := &Table{}
	t.Add(header...)
	t.text.WriteString("|" + strings.Repeat("---|", len(header)) + "\n")
	return t
}

// Add adds a row to the table.
func (t *Table) Add(cells ...string) {
	t.text.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// String returns the table as Markdown lines.
func (t *Table) String() string { return t.text.String() }

// notInAnchor matches the characters that GitHub omits from a heading's anchor.
var notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// Link returns a link to a heading on the same page.
func Link(heading string) string { return "[" + heading + "](#" + Anchor(heading) + ")" }

// Anchor returns the anchor that GitHub gives to a heading.
func Anchor(heading string) string {
	return strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// Wrap breaks each paragraph into lines. A paragraph is one line in the given text.
func Wrap(text string) string {
	paragraphs := strings.Split(text, "\n")
	for i, paragraph := range paragraphs {
		paragraphs[i] = wrapParagraph(paragraph)
	}
	return strings.Join(paragraphs, "\n\n")
}

func wrapParagraph(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > lineWidth {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return strings.Join(append(lines, line), "\n")
}
