package plan

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

func TestStyleOfLines(t *testing.T) {
	const complete = "text with several words\nNAME    OWNER    REASON\na       Gateway  a long reason\nlonger  é        b\nproblem\n"
	for name, test := range map[string]struct {
		style Style
		want  string
	}{
		"no terminal":         {Style{}, complete},
		"wide terminal":       {Style{Width: 80}, complete},
		"exact width":         {Style{Width: 30}, complete},
		"one column too wide": {Style{Width: 29}, "text with several words\nNAME    OWNER    REASON\na       Gateway  a long reas…\nlonger  é        b\nproblem\n"},
		"narrow terminal":     {Style{Width: 10}, "text with several words\nNAME    OWNER   REASON\na       Gatew…  a lon…\nlonger  é       b\nproblem\n"},
		"narrow, but --wide":  {Style{Width: 10, Wide: true}, complete},
		"colors":              {Style{Color: true}, "text with several words\nNAME    OWNER    REASON\n" + terminal.Red + "a       Gateway  a long reason" + terminal.Reset + "\nlonger  é        b\n" + terminal.Red + "problem" + terminal.Reset + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			out := newColumns(&got, test.style)
			fmt.Fprintln(out, "text with several words")
			fmt.Fprintln(out, "NAME\tOWNER\tREASON"+rowMark)
			terminal.Printf(out, "a\tGateway\t%s"+terminal.MarkRow(true)+"\n", "a long reason")
			terminal.Printf(out, "longer\té\t%s"+terminal.MarkRow(false)+"\n", "b")
			terminal.Printf(out, "problem"+problemMark+"\n")
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
