package cli

import (
	"bytes"
	"io"
	"os"
	"testing"
)

func TestOnlyOutputWithColorsKeepsColors(t *testing.T) {
	var out bytes.Buffer
	stream := output{stream: &out}
	for _, w := range []io.Writer{stream, withColors(stream)} {
		if _, err := io.WriteString(w, "\x1b[31ma\x1b[m\x1b[2J\n"); err != nil {
			t.Fatal(err)
		}
	}
	if want := `\x1b[31ma\x1b[m\x1b[2J` + "\n\x1b[31ma\x1b[m" + `\x1b[2J` + "\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestColorsAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	setEnvironment := func(noColor, term string) {
		t.Setenv("NO_COLOR", noColor)
		t.Setenv("TERM", term)
	}
	auto := colorMode("auto")
	if setEnvironment("", "xterm"); !auto.enabled(terminal) {
		t.Error("output to a terminal has no colors")
	}
	if auto.enabled(file) || auto.enabled(&bytes.Buffer{}) {
		t.Error("output to a file or a buffer has colors")
	}
	if colorMode("never").enabled(terminal) {
		t.Error("output with --color never has colors")
	}
	if setEnvironment("1", "xterm"); auto.enabled(terminal) {
		t.Error("output has colors although NO_COLOR is set")
	}
	if setEnvironment("", "dumb"); auto.enabled(terminal) {
		t.Error("output to a dumb terminal has colors")
	}
}
