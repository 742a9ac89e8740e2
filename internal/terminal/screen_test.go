package terminal

import (
	"bytes"
	"testing"
)

func TestScreenReplacesItsText(t *testing.T) {
	var out bytes.Buffer
	s := NewScreen(&out)
	for _, step := range []struct{ text, want string }{
		{"a\nb\n", "\r\x1b[Ja\nb\n"},
		{"1234567890\n" + Red + "12345" + Reset + "\n", "\x1b[2A\r\x1b[J1234567890\n" + Red + "12345" + Reset + "\n"}, // the first line takes two lines of five letters
		{"\x1b[2Jc\n", "\x1b[3A\r\x1b[J" + `\x1b[2Jc` + "\n"},
	} {
		out.Reset()
		if err := s.Show(step.text, 5); err != nil {
			t.Fatal(err)
		}
		if out.String() != step.want {
			t.Errorf("Show(%q) writes %q, want %q", step.text, out.String(), step.want)
		}
	}
}
