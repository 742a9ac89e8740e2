// Package message limits how long condition messages are. It measures a text in JSON,
// cuts texts, and describes a list by its first items and a count: "a, b and 7 more". It
// does not know what the messages say.
package message

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxSize is the maximum size for one message: 1 KiB.
const MaxSize = 1 << 10

const ellipsis = "…"

// Size returns how many bytes the text needs in a JSON string, which is at least its
// length.
func Size(text string) int {
	size := 0
	for i, r := range text {
		size += runeSize(text[i:], r)
	}
	return size
}

// maxRuneSize is the most that one byte can grow to in JSON, as in \u003c.
const maxRuneSize = 6

// runeSize returns the size of the text's first rune in JSON.
func runeSize(text string, r rune) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return maxRuneSize
	default:
		_, n := utf8.DecodeRuneInString(text)
		return n
	}
}

// Cut returns the text if it fits. Otherwise it returns the longest beginning that fits
// together with an ellipsis, if possible up to a word end. The result is valid UTF-8.
func Cut(text string, maximum int) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if len(text) <= maximum/maxRuneSize || Size(text) <= maximum {
		return text
	}
	end, size := 0, len(ellipsis)
	for i, r := range text {
		if size += runeSize(text[i:], r); size > maximum {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	beginning := text[:end]
	if word := strings.LastIndexByte(beginning, ' '); word >= end/2 && text[end] != ' ' {
		beginning = beginning[:word]
	}
	return strings.TrimRight(beginning, " ") + ellipsis
}

// List is a message that lists the first items that fit and counts the others.
type List struct {
	// Before and After enclose the items.
	Before, After string
	// Separator separates the items. Empty means ", ".
	Separator string
	// More describes the other items after the last separator. It contains the verb %d
	// for their number. Empty means "and %d more".
	More string
	// MaxSize limits the whole message. Zero means [MaxSize].
	MaxSize int
	// MaxItems limits how many items are listed. Zero means no limit.
	MaxItems int

	items []string
	size  int // items and separators
	full  bool
	more  int // items that are only counted
}

// Add adds an item, in the format of package fmt. It does not format an item that the message
// only counts.
func (l *List) Add(format string, args ...any) {
	if l.full || l.MaxItems > 0 && len(l.items) == l.MaxItems {
		l.full = true
		l.more++
		return
	}
	item := fmt.Sprintf(format, args...)
	l.items = append(l.items, item)
	l.size += l.sizeOf(item)
	l.full = l.size > l.space()
}

// Full reports whether the message only counts further items.
func (l *List) Full() bool { return l.full }

// Count adds items that the message only counts.
func (l *List) Count(items int) {
	l.more += max(0, items)
	l.full = l.full || items > 0
}

// Len returns how many items were added, whether listed or only counted.
func (l *List) Len() int { return len(l.items) + l.more }

// String returns the message.
func (l *List) String() string {
	items, size, more := l.items, l.size, l.more
	for len(items) > 1 && size+len(l.describeMore(more)) > l.space() {
		last := len(items) - 1
		size -= l.sizeOf(items[last])
		items, more = items[:last], more+1
	}
	rest := l.describeMore(more)
	var text strings.Builder
	text.WriteString(l.Before)
	for i, item := range items {
		if i > 0 {
			text.WriteString(l.separator())
		}
		text.WriteString(Cut(item, l.space()-len(rest)))
	}
	return text.String() + rest + l.After
}

// describeMore returns the text for the other items, or "" if there are none.
func (l *List) describeMore(more int) string {
	if more == 0 {
		return ""
	}
	return l.separator() + fmt.Sprintf(cmp.Or(l.More, "and %d more"), more)
}

func (l *List) separator() string { return cmp.Or(l.Separator, ", ") }

// sizeOf returns the size that an item and its separator need.
func (l *List) sizeOf(item string) int { return Size(item) + len(l.separator()) }

// space returns the size that is left for the items.
func (l *List) space() int {
	return cmp.Or(l.MaxSize, MaxSize) - Size(l.Before) - Size(l.After)
}
