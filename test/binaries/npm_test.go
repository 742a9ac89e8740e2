package binaries

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeNPM is a script that replaces npm: it writes an archive to the directory after
// --pack-destination.
const fakeNPM = `#!/bin/sh
while [ "$1" != --pack-destination ]; do shift; done
cp "$ARCHIVE" "$2/library-1.0.0.tgz"
`

func TestNPMUnpacksAnArchiveOnlyWithItsChecksum(t *testing.T) {
	dir := t.TempDir()
	archive := releaseArchive(t, map[string]string{"library.min.js": "library()"})
	for name, content := range map[string][]byte{"npm": []byte(fakeNPM), "archive": archive} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	t.Setenv("ARCHIVE", filepath.Join(dir, "archive"))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	library := NPM{Name: "library", Version: "1.0.0", Files: []string{"library.min.js"}, Integrity: "sha512-other"}
	if _, err := library.Unpack(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "want sha512-other") {
		t.Fatalf("got %v, want an error about the checksum", err)
	}
	library.Integrity = integrityOf(archive)
	var progress bytes.Buffer
	for _, want := range []string{"downloading library 1.0.0", "library: from the cache"} {
		progress.Reset()
		unpacked, err := library.Unpack(t.Context(), &progress)
		if err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(unpacked, "library.min.js")); string(content) != "library()" {
			t.Errorf("the file contains %q, %v", content, err)
		}
		if !strings.Contains(progress.String(), want) {
			t.Errorf("progress is %q, want %q", &progress, want)
		}
	}
}
