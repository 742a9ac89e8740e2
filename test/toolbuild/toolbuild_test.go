package toolbuild

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var some = Set{
	Name:            "set",
	Module:          "nested",
	Programs:        []Program{{"first", "example.com/first"}, {"second", "example.com/second"}},
	RequiredModules: []string{"example.com/first", "example.com/second"},
}

func TestFailedBuildLeavesNothing(t *testing.T) {
	b := &build{set: some, moduleDir: t.TempDir(), dir: filepath.Join(t.TempDir(), "key"), progress: t.Output()}
	err := b.ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), some.Programs[0].ImportPath) {
		t.Errorf("building outside the module: got error %v, want one that names the package", err)
	}
	if _, err := os.Stat(b.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the binaries: got %v, want that it does not exist", err)
	}
}

func TestSecondBuildWaitsForTheFirst(t *testing.T) {
	b := &build{set: some, dir: filepath.Join(t.TempDir(), "key"), progress: t.Output()}
	unlock, err := b.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 2*lockInterval)
	defer cancel()
	if err := b.ensure(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another build runs: got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestVersions(t *testing.T) {
	got, err := some.versions([]byte("module m\nrequire (\nexample.com/first v1.2.3\nexample.com/second v1.4.5\n)\n"))
	if err != nil || got["example.com/first"] != "v1.2.3" || got["example.com/second"] != "v1.4.5" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := some.versions([]byte("module m\nrequire example.com/first v1.2.3\n")); err == nil {
		t.Error("no error although a version is missing")
	}
}

// TestFingerprintNamesThePrograms: a directory from before a program was added
// is not taken for a complete one.
func TestFingerprintNamesThePrograms(t *testing.T) {
	all, fewer := fingerprint(nil, some.Programs, nil), fingerprint(nil, some.Programs[1:], nil)
	if all == fewer {
		t.Errorf("both %d and %d programs have the fingerprint %s", len(some.Programs), len(some.Programs)-1, all)
	}
}
