package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// colorMode is a --color value.
type colorMode string

var colorModes = []string{"auto", "always", "never"}

const colorUsage = "`mode` of colors in text: auto, always or never; auto uses colors on a terminal, unless NO_COLOR is set"

// check returns an error for an unknown mode.
func (m colorMode) check() error {
	if !slices.Contains(colorModes, string(m)) {
		return fmt.Errorf("must be one of %s, got %q", strings.Join(colorModes, ", "), string(m))
	}
	return nil
}

// enabled reports whether output to w has colors.
func (m colorMode) enabled(w io.Writer) bool {
	if m != "auto" {
		return m == "always"
	}
	file := fileOf(w)
	return file != nil && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}
