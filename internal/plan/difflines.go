package plan

import "strings"

// DiffLineKind says what a line of a unified diff is.
type DiffLineKind string

// The kinds of lines.
const (
	DiffHeader    DiffLineKind = "Header"
	DiffHunk      DiffLineKind = "Hunk"
	DiffAdded     DiffLineKind = "Added"
	DiffRemoved   DiffLineKind = "Removed"
	DiffUnchanged DiffLineKind = "Unchanged"
)

// DiffLine is a line of a unified diff. Text has the sign and no line break.
type DiffLine struct {
	Kind DiffLineKind
	Text string
}

// DiffLines returns the lines of a unified diff. The first two lines are the headers. Their
// prefixes cannot identify them, because a removed line may have the same prefix.
func DiffLines(unified string) []DiffLine {
	var all []DiffLine
	for text := range strings.Lines(unified) {
		line := DiffLine{Kind: DiffUnchanged, Text: strings.TrimSuffix(text, "\n")}
		switch {
		case len(all) < 2:
			line.Kind = DiffHeader
		case strings.HasPrefix(text, "@@"):
			line.Kind = DiffHunk
		case strings.HasPrefix(text, "-"):
			line.Kind = DiffRemoved
		case strings.HasPrefix(text, "+"):
			line.Kind = DiffAdded
		}
		all = append(all, line)
	}
	return all
}
