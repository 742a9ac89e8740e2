package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWrapBreaksLongLines(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		width int
		want  string
	}{
		"short line":    {"a b\n", 80, "a b\n"},
		"long line":     {"aaa bbb ccc\n", 7, "aaa bbb\nccc\n"},
		"indented line": {"  aaa bbb ccc\n", 10, "  aaa bbb\n  ccc\n"},
		"flag": {"  -f, --filename file  path of a file or of a directory\n", 48,
			"  -f, --filename file  path of a file or of a\n                       directory\n"},
		"flag on a narrow terminal": {"      --cluster-domain domain   domain of the cluster\n", 40,
			"      --cluster-domain domain\n        domain of the cluster\n"},
		"paragraph":   {"aaa bbb\nccc ddd\n", 11, "aaa bbb ccc\nddd\n"},
		"list":        {"Status:\n  0  success\n  1  a failure of the\n     program\nEnd:\n  a\n  b\n", 80, "Status:\n  0  success\n  1  a failure of the program\nEnd:\n  a\n  b\n"},
		"long word":   {"aaaaaaaaaaaa bbb\n", 5, "aaaaaaaaaaaa bbb\n"},
		"empty lines": {"a\n\nb\n", 5, "a\n\nb\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, wrap(test.text, test.width)); diff != "" {
				t.Errorf("the text differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHelpFitsTheWidth(t *testing.T) {
	for _, command := range []string{"", "plan", "controller", "completion bash", "reconcile", "wait", "dns", "dns adopt", "access", "access adopt"} {
		var out bytes.Buffer
		root := rootCommand("tunnel-gateway", &out)
		root.SetArgs(append(strings.Fields(command), "--help"))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if len(line) > helpWidth+1 && strings.Contains(strings.TrimSpace(line[:helpWidth]), " ") {
				t.Errorf("%s: %d columns: %s", command, len(line), line)
			}
		}
	}
}
