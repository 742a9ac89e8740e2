package main

import (
	"strings"
	"testing"
)

func TestWrongArgumentsPrintTheUsage(t *testing.T) {
	for _, arguments := range [][]string{nil, {"tables"}, {"flags", "rules"}} {
		err := run(arguments, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "Usage: go run ../../test/docgen fields|flags|metrics|rules") {
			t.Errorf("%q: got error %v, want the usage", arguments, err)
		}
	}
}
