// Package terminal prepares text from other users for a terminal.
package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape replaces each unprintable character by its escape sequence in a Go string. The
// text's author could otherwise clear the screen with an escape sequence or forge a line.
// Escape keeps backslashes, which are frequent in paths.
func Escape(text string) string {
	return escape(text, func(string) int { return 0 })
}

// EscapeLines escapes text like [Escape], except line breaks.
func EscapeLines(text string) string {
	return escape(text, func(rest string) int { return len(rest) - len(strings.TrimPrefix(rest, "\n")) })
}

// EscapeOutput escapes text like [Escape], except line breaks, tabs, and the given sequences.
func EscapeOutput(text string, sequences ...string) string {
	return escape(text, func(rest string) int {
		if rest[0] == '\n' || rest[0] == '\t' {
			return 1
		}
		for _, sequence := range sequences {
			if strings.HasPrefix(rest, sequence) {
				return len(sequence)
			}
		}
		return 0
	})
}

// escape escapes unprintable characters. keep returns how many bytes at the beginning of
// the remaining text stay as they are.
func escape(text string, keep func(rest string) int) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else if kept := keep(text); kept > 0 {
			size = kept
			b.WriteString(text[:size])
		} else {
			b.WriteString(strings.Trim(strconv.Quote(text[:size]), `"`))
		}
		text = text[size:]
	}
	return b.String()
}

// EscapeJSON replaces each unprintable character in JSON text, except line breaks, by its
// escape sequence in a JSON string. The text keeps its value.
func EscapeJSON(text []byte) []byte {
	return replaceUnprintable(text, func(to []byte, r rune) []byte {
		for _, unit := range utf16.AppendRune(nil, r) {
			to = fmt.Appendf(to, `\u%04x`, unit)
		}
		return to
	})
}

// EscapeYAML replaces each unprintable character in YAML text, except line breaks, by its
// escape sequence in a double-quoted scalar. The text keeps its value if only
// double-quoted scalars contain unprintable characters, as in JSON.
func EscapeYAML(text []byte) []byte {
	return replaceUnprintable(text, func(to []byte, r rune) []byte {
		if r > 0xffff {
			return fmt.Appendf(to, `\U%08x`, r)
		}
		return fmt.Appendf(to, `\u%04x`, r)
	})
}

// replaceUnprintable replaces the unprintable characters in text, except line breaks.
// replace appends the replacement for a character.
func replaceUnprintable(text []byte, replace func(to []byte, r rune) []byte) []byte {
	replaced := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r == '\n' || strconv.IsPrint(r) {
			replaced = utf8.AppendRune(replaced, r)
		} else {
			replaced = replace(replaced, r)
		}
	}
	return replaced
}
