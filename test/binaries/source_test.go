package binaries

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var testSource = Source{
	Name: "program", Module: "nested", ImportPath: "example.com/program", VersionModule: "example.com/program", Flags: etcdFlags,
}

func TestFailedBuildIsNotCached(t *testing.T) {
	target := &target{Source: testSource, moduleDir: t.TempDir(), entry: testEntry(t)}
	err := target.build(t.Context())
	if err == nil || !strings.Contains(err.Error(), testSource.ImportPath) {
		t.Errorf("build outside the module: got error %v, want an error that names the package", err)
	}
	if _, err := os.Stat(target.entry.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat the directory of the program: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestSecondProcessWaitsForTheFirst(t *testing.T) {
	entry := testEntry(t)
	unlock, err := entry.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 2*lockInterval)
	defer cancel()
	err = entry.fill(ctx, func(string) error { t.Error("the second process fills the entry"); return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another process has the lock: got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestEntryWithoutItsProgramIsFilledAgain(t *testing.T) {
	entry := testEntry(t)
	if err := os.Mkdir(entry.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(entry.dir, "rest"), "of an old entry")
	fills := 0
	for range 2 {
		err := entry.fill(t.Context(), func(dir string) error {
			fills++
			writeFile(t, filepath.Join(dir, "program"), "program")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(entry.dir, "rest")); fills != 1 || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the entry was filled %d times, want 1; stat an old file: %v", fills, err)
	}
}

func TestRequiredVersionIsThatOfTheModule(t *testing.T) {
	got, err := testSource.requiredVersion([]byte("module m\nrequire (\nexample.com/other v1.4.5\nexample.com/program v1.2.3\n)\n"))
	if err != nil || got != "v1.2.3" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := testSource.requiredVersion([]byte("module m\nrequire example.com/other v1.2.3\n")); err == nil {
		t.Error("requiredVersion did not fail although the module is missing")
	}
}

func TestFingerprintDependsOnTheDependenciesAndTheFlags(t *testing.T) {
	other := testSource
	other.Flags = kubernetesFlags
	fingerprints := map[string]bool{
		testSource.fingerprint(nil, "v1.2.3"): true, testSource.fingerprint([]byte("module m"), "v1.2.3"): true,
		other.fingerprint(nil, "v1.2.3"): true,
	}
	if len(fingerprints) != 3 {
		t.Errorf("three builds have %d fingerprints", len(fingerprints))
	}
}

func testEntry(t *testing.T) cacheEntry {
	return cacheEntry{filepath.Join(t.TempDir(), "entry"), "program", []string{"program"}, t.Output()}
}
