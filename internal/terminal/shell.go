package terminal

import (
	"regexp"
	"strings"
)

// plainInShell matches words that a shell does not change.
var plainInShell = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// QuoteForShell returns the text as one word of a POSIX shell, for commands that people copy.
func QuoteForShell(text string) string {
	if plainInShell.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
