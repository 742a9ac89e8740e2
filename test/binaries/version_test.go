package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Another program with this name may ignore --version.
func TestProgramThatPrintsWithoutEndIsSkipped(t *testing.T) {
	path := filepath.Join(t.TempDir(), APIServer)
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec yes 1.36.0\n"), 0o700); err != nil { // #nosec G306 -- a program
		t.Fatal(err)
	}
	_, err := versionOf(t.Context(), path)
	if err == nil || strings.Contains(err.Error(), "killed") { // the timeout kills the program
		t.Errorf("error = %v, want an error because of the output", err)
	}
}
