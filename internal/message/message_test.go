package message_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// encodedSize returns the text's size in JSON, without the quotation marks.
func encodedSize(t *testing.T, text string) int {
	t.Helper()
	encoded, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return len(encoded) - len(`""`)
}

func TestCutEndsAfterAWord(t *testing.T) {
	for _, test := range []struct {
		text    string
		maximum int
		want    string
	}{
		{"short", 5, "short"},
		{"one two three", 13, "one two three"},
		{"one two three", 12, "one two…"},
		{"one two three", 10, "one two…"},
		{"one two three", 9, "one…"},
		{"abcdefgh", 6, "abc…"},
		{"üüüü", 8, "üüüü"},
		{"üüüü", 7, "üü…"},
		{`""""`, 7, `""…`},
		{"<<", 11, "<…"},
		{"a\xffb", 100, "a\uFFFDb"},
		{"anything", 3, "…"},
	} {
		if got := message.Cut(test.text, test.maximum); got != test.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", test.text, test.maximum, got, test.want)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("one two three", 12)
	f.Add("ü\u2028<\"\\\n\x00\xff", 20)
	f.Fuzz(func(t *testing.T, text string, maximum int) {
		maximum = 3 + max(0, maximum)%message.MaxSize
		cut := message.Cut(text, maximum)
		if size := encodedSize(t, cut); size > maximum || !utf8.ValidString(cut) {
			t.Errorf("Cut(%q, %d) = %q, which has the size %d or is not valid UTF-8", text, maximum, cut, size)
		}
		if valid := utf8.ValidString(text); valid && cut != text && message.Size(text) <= maximum {
			t.Errorf("Cut(%q, %d) = %q, although the text fits", text, maximum, cut)
		}
		if got, want := message.Size(cut), encodedSize(t, cut); got < want {
			t.Errorf("Size(%q) = %d, less than %d", cut, got, want)
		}
	})
}

func newList(l message.List, items ...string) *message.List {
	for _, item := range items {
		l.Add("%s", item)
	}
	return &l
}

func TestListNamesTheFirstItemsAndCountsTheOthers(t *testing.T) {
	for name, test := range map[string]struct {
		list message.List
		want string
	}{
		"all fit":        {message.List{Before: "(", After: ")"}, "(one, two, three, four)"},
		"some fit":       {message.List{MaxSize: 20}, "one, and 3 more"},
		"some more fit":  {message.List{MaxSize: 22}, "one, two, and 2 more"},
		"not enough":     {message.List{MaxSize: 22, Before: "(", After: ")"}, "(one, and 3 more)"},
		"few items":      {message.List{MaxItems: 2}, "one, two, and 2 more"},
		"all the items":  {message.List{MaxItems: 4}, "one, two, three, four"},
		"other wordings": {message.List{MaxItems: 1, Separator: "; ", More: "%d others"}, "one; 3 others"},
	} {
		t.Run(name, func(t *testing.T) {
			list := newList(test.list, "one", "two", "three", "four")
			if got := list.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if list.Len() != 4 {
				t.Errorf("got %d items, want 4", list.Len())
			}
		})
	}
}

func TestListCutsAnItemThatDoesNotFit(t *testing.T) {
	long := strings.Repeat("x", 100)
	for want, items := range map[string][]string{
		"(" + strings.Repeat("x", 25) + "…)":             {long},
		"(" + strings.Repeat("x", 13) + "…, and 2 more)": {long, "y", long},
	} {
		if got := newList(message.List{Before: "(", After: ")", MaxSize: 30}, items...).String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func FuzzList(f *testing.F) {
	f.Add("one two three ü <\" four", 40, 2)
	f.Fuzz(func(t *testing.T, text string, maximum, maxItems int) {
		maximum = 40 + max(0, maximum)%message.MaxSize
		list := newList(message.List{MaxSize: maximum, MaxItems: max(0, maxItems), Before: "(", After: ")"}, strings.Fields(text)...)
		got := list.String()
		if size := encodedSize(t, got); size > maximum || !utf8.ValidString(got) {
			t.Errorf("the list %q has the size %d, more than %d, or is not valid UTF-8", got, size, maximum)
		}
		if list.Len() != len(strings.Fields(text)) {
			t.Errorf("the list has %d items, want %d", list.Len(), len(strings.Fields(text)))
		}
	})
}
