package terminal

import "testing"

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		`/a\d "ü" 猫`:              `/a\d "ü" 猫`,
		"a\x1b[2Jb":               `a\x1b[2Jb`,
		"a\u009b1A\u202eb":        `a\u009b1A\u202eb`,
		"a\r\nb\tc\a":             `a\r\nb\tc\a`,
		"a\u00a0b":                `a\u00a0b`,
		"a\xffb\ufffd":            `a\xffb` + "\ufffd",
		"\x1b]0;title\x07\x00end": `\x1b]0;title\a\x00end`,
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) is %q, want %q", text, got, want)
		}
	}
}
