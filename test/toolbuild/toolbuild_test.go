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

var testSet = Set{
	Name:            "set",
	Module:          "nested",
	Programs:        []Program{{"first", "example.com/first"}, {"second", "example.com/second"}},
	RequiredModules: []string{"example.com/first", "example.com/second"},
}

func TestFailedBuildIsNotCached(t *testing.T) {
	b := &build{set: testSet, moduleDir: t.TempDir(), dir: filepath.Join(t.TempDir(), "key"), progress: t.Output()}
	err := b.ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), testSet.Programs[0].ImportPath) {
		t.Errorf("build outside the module: got error %v, want an error that names the package", err)
	}
	if _, err := os.Stat(b.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("stat the directory of the binaries: got %v, want %v", err, fs.ErrNotExist)
	}
}

func TestSecondBuildWaitsForTheFirst(t *testing.T) {
	b := &build{set: testSet, dir: filepath.Join(t.TempDir(), "key"), progress: t.Output()}
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

func TestVersionsRequireEveryModule(t *testing.T) {
	got, err := testSet.versions([]byte("module m\nrequire (\nexample.com/first v1.2.3\nexample.com/second v1.4.5\n)\n"))
	if err != nil || got["example.com/first"] != "v1.2.3" || got["example.com/second"] != "v1.4.5" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := testSet.versions([]byte("module m\nrequire example.com/first v1.2.3\n")); err == nil {
		t.Error("versions did not fail although a module is missing")
	}
}

func TestFingerprintDependsOnThePrograms(t *testing.T) {
	// After a program is added to a set, the directory of the earlier build is not
	// reused.
	all, fewer := fingerprint(nil, testSet.Programs, nil), fingerprint(nil, testSet.Programs[1:], nil)
	if all == fewer {
		t.Errorf("%d and %d programs have the same fingerprint %s", len(testSet.Programs), len(testSet.Programs)-1, all)
	}
}
