package terminal

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

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

func TestEscapeKeepsLineBreaksAndOwnSequences(t *testing.T) {
	const text = "a\x1b[31mb\x1b[m\x1b[2J\n\tc\r\x1b[31"
	for want, got := range map[string]string{
		`a\x1b[31mb\x1b[m\x1b[2J` + "\n" + `\tc\r\x1b[31`:           EscapeLines(text),
		`a\x1b[31mb\x1b[m\x1b[2J` + "\n\t" + `c\r\x1b[31`:           EscapeOutput(text),
		"a\x1b[31mb\x1b[m" + `\x1b[2J` + "\n\t" + `c\r` + `\x1b[31`: EscapeOutput(text, Colors()...),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEncodedTextKeepsItsValue(t *testing.T) {
	const value = "a\x1b\x7f\u0085\u009b\u00a0\u2028\u202e\ufeff\U000e0001\U0001f600\n\"\\ü"
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", " ")
	if err := encoder.Encode([]string{value}); err != nil {
		t.Fatal(err)
	}
	for name, format := range map[string]struct {
		escape func([]byte) []byte
		decode func([]byte, any) error
	}{
		"JSON": {EscapeJSON, json.Unmarshal},
		"YAML": {EscapeYAML, func(text []byte, into any) error { return yaml.Unmarshal(text, into) }},
	} {
		escaped := format.escape([]byte(text.String()))
		var got []string
		if err := format.decode(escaped, &got); err != nil || len(got) != 1 || got[0] != value {
			t.Errorf("%s: %s has the value %q, %v", name, escaped, got, err)
		}
		if want := EscapeLines(string(escaped)); want != string(escaped) {
			t.Errorf("%s contains unprintable characters: %q", name, escaped)
		}
	}
}
