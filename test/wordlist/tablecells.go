package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxCellWords limits a table cell; a longer one should be prose.
const maxCellWords = 30

// referencePages are hand-written pages for looking things up, whose tables can have
// long cells.
var referencePages = []string{"docs/cloudflare-plans-and-limits.md", "docs/limits.md"}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	// linkTarget matches the part that readers do not see.
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
)

// checkTableCells reports long table cells outside reference pages.
func checkTableCells(files []file) []finding {
	var findings []finding
	for _, p := range pagesOf(files) {
		if slices.Contains(referencePages, p.path) {
			continue
		}
		for _, line := range p.lines {
			if !line.isTable {
				continue
			}
			for _, cell := range tableCells(line.text) {
				if words := len(strings.Fields(cell)); words > maxCellWords {
					findings = append(findings, finding{p.path, line.number, fmt.Sprintf("table cell of %d words, the maximum is %d; write prose instead", words, maxCellWords)})
				}
			}
		}
	}
	return findings
}

// tableCells returns the texts that readers see in a row.
func tableCells(row string) []string {
	row = codeSpan.ReplaceAllStringFunc(row, func(code string) string { return strings.ReplaceAll(code, "|", "") })
	row = strings.ReplaceAll(linkTarget.ReplaceAllString(row, "]"), `\|`, "")
	return strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
}
