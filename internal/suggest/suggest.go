// Package suggest finds the name that a user probably meant.
package suggest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// Closest returns the candidate that is the most similar to word, or "" if no candidate
// resembles it. It ignores case. Of equally similar candidates it returns the first.
func Closest(word string, candidates []string) string {
	closest, least := "", maxDistance(word)+1
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(candidate)); d < least {
			closest, least = candidate, d
		}
	}
	return closest
}

// Similar returns at most limit candidates that resemble word, each once and the most similar
// first. It ignores case.
func Similar(word string, candidates []string, limit int) []string {
	word, distances := strings.ToLower(word), map[string]int{}
	for _, candidate := range candidates {
		if d := distance(word, strings.ToLower(candidate)); d <= maxDistance(word) {
			distances[candidate] = d
		}
	}
	similar := slices.SortedFunc(maps.Keys(distances), func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), strings.Compare(a, b))
	})
	return similar[:min(limit, len(similar))]
}

// distance returns the number of letters that differ. If two adjacent letters are swapped
// and all others are equal, it is 1.
func distance(a, b string) int {
	if isSwapped(a, b) {
		return 1
	}
	return levenshtein.Distance(a, b, nil)
}

// isSwapped reports whether the words differ only in the order of two adjacent letters.
func isSwapped(a, b string) bool {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	return len(a) == len(b) && i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}

// Field returns the field that is the most similar to word, otherwise the only field that
// begins with word and is longer, or "". It ignores case.
func Field(word string, fields []string) string {
	if closest := Closest(word, fields); closest != "" {
		return closest
	}
	var longer []string
	for _, field := range fields {
		if len(word) >= minPrefix && strings.HasPrefix(strings.ToLower(field), strings.ToLower(word)) {
			longer = append(longer, field)
		}
	}
	return OnlyOne(longer)
}

// OnlyOne returns the only candidate, or "" if there are several or none.
func OnlyOne(candidates []string) string {
	if len(candidates) == 1 {
		return candidates[0]
	}
	return ""
}

// minPrefix is the number of letters that suffice to suggest a longer word.
const minPrefix = 4

// maxDistance returns the number of letters by which a suggestion may differ. In a short
// word, two other letters make another word.
func maxDistance(word string) int {
	switch n := len(word); {
	case n <= 2:
		return 0
	case n <= 4:
		return 1
	case n <= 16:
		return 2
	}
	return 3
}

// DidYouMean appends a suggestion to a problem, unless the suggestion is empty.
func DidYouMean(problem, suggestion string) string {
	if suggestion == "" {
		return problem
	}
	return problem + "; did you mean " + suggestion + "?"
}

// Sentence ends a text with a full stop, unless it ends with a full stop or a suggestion.
func Sentence(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
