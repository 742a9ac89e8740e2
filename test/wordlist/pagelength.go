package main

import (
	"fmt"
	"strings"
)

// maxPageWords limits the words outside code on all hand-written pages in docs together.
const maxPageWords = 65_900

// pageLimit limits the words outside code on a page.
type pageLimit struct {
	words int
	// tables reports whether the words in tables count.
	tables bool
}

// pageLimits are for pages that readers should finish in one sitting.
var pageLimits = map[string]pageLimit{
	"README.md":                           {700, false},
	"docs/cloudflare-plans-and-limits.md": {600, false},
	"docs/day-2.md":                       {600, true},
	"docs/troubleshooting.md":             {3500, true},
	"docs/what-the-backend-sees.md":       {600, true},
}

// checkPageLengths reports pages above their limits, and whether the pages together are
// above theirs.
func checkPageLengths(files []file) []finding {
	var findings []finding
	total := 0
	for _, p := range pagesOf(files) {
		if strings.HasPrefix(p.path, "docs/") {
			total += len(strings.Fields(p.prose(true)))
		}
		limit, ok := pageLimits[p.path]
		if !ok {
			continue
		}
		if words := len(strings.Fields(p.prose(limit.tables))); words > limit.words {
			findings = append(findings, finding{p.path, 0, fmt.Sprintf("%d words, the maximum is %d", words, limit.words)})
		}
	}
	if total > maxPageWords {
		findings = append(findings, finding{"docs", 0, fmt.Sprintf("%d words on all pages together, the maximum is %d", total, maxPageWords)})
	}
	return findings
}
