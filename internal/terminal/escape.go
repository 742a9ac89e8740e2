// Package terminal prepares text from other users for a terminal.
package terminal

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Escape replaces each unprintable character by its escape sequence in a Go string. The author
// of the text could otherwise clear the screen with an escape sequence or forge a line. It keeps
// backslashes, which are frequent in paths.
func Escape(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			b.WriteString(strings.Trim(strconv.Quote(text[:size]), `"`))
		}
		text = text[size:]
	}
	return b.String()
}
