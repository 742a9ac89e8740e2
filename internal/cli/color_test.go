package cli

import (
	"bytes"
	"os"
	"testing"
)

// A file is no terminal, and a terminal has colours unless somebody says
// otherwise.
func TestColours(t *testing.T) {
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
	set := func(noColor, term string) {
		t.Setenv("NO_COLOR", noColor)
		t.Setenv("TERM", term)
	}
	auto := diffOptions{color: "auto"}
	if set("", "xterm"); !auto.useColor(terminal) {
		t.Error("a terminal has no colours")
	}
	if auto.useColor(file) || auto.useColor(&bytes.Buffer{}) {
		t.Error("what is no terminal has colours")
	}
	if (&diffOptions{color: "never"}).useColor(terminal) {
		t.Error("there are colours in spite of never")
	}
	if set("1", "xterm"); auto.useColor(terminal) {
		t.Error("there are colours in spite of NO_COLOR")
	}
	if set("", "dumb"); auto.useColor(terminal) {
		t.Error("a dumb terminal has colours")
	}
}
