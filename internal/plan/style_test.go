package plan

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStyleOfLines(t *testing.T) {
	const wide = "a long hostname"
	for name, test := range map[string]struct {
		style Style
		want  string
	}{
		"no terminal":        {Style{}, "text a long hostname\nNAME  REASON\na     a long hostname\nbb    é\nproblem\n"},
		"wide terminal":      {Style{Width: 80}, "text a long hostname\nNAME  REASON\na     a long hostname\nbb    é\nproblem\n"},
		"narrow terminal":    {Style{Width: 10}, "text a long hostname\nNAME  REA…\na     a l…\nbb    é\nproblem\n"},
		"narrow, but --wide": {Style{Width: 10, Wide: true}, "text a long hostname\nNAME  REASON\na     a long hostname\nbb    é\nproblem\n"},
		"colors":             {Style{Color: true, Width: 10}, "text a long hostname\nNAME  REA…\n" + red + "a     a l…" + reset + "\nbb    é\n" + red + "problem" + reset + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			out := newTable(&got, test.style)
			printf(out, "text %s\n", wide)
			fmt.Fprintln(out, "NAME\tREASON"+rowMark)
			printf(out, "a\t%s"+markRow(true)+"\n", wide)
			printf(out, "bb\té"+markRow(false)+"\n")
			printf(out, "problem"+problemMark+"\n")
			if err := out.Flush(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Errorf("the text differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWideListsAreComplete(t *testing.T) {
	names := strings.Split("a b c d e", " ")
	if got, want := (Style{}).abbreviate(names), "a, b, c and 2 more"; got != want {
		t.Errorf("abbreviated list = %q, want %q", got, want)
	}
	if got, want := (Style{Wide: true}).abbreviate(names), "a, b, c, d, e"; got != want {
		t.Errorf("wide list = %q, want %q", got, want)
	}
}
