package cluster

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFailedBuildLeavesNothing(t *testing.T) {
	b := &build{moduleDir: t.TempDir(), dir: filepath.Join(t.TempDir(), "key"), progress: t.Output()}
	err := b.ensure(t.Context())
	if err == nil || !strings.Contains(err.Error(), commands[0].importPath) {
		t.Errorf("building outside the module: got error %v, want one that names the package", err)
	}
	if _, err := os.Stat(b.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the binaries: got %v, want that it does not exist", err)
	}
}

func TestSecondBuildWaitsForTheFirst(t *testing.T) {
	b := &build{dir: filepath.Join(t.TempDir(), "key"), progress: t.Output()}
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

func TestRequiredVersions(t *testing.T) {
	got, err := requiredVersions([]byte("module m\nrequire (\nk8s.io/kubernetes v1.2.3\ngo.etcd.io/etcd/server/v3 v3.4.5\n)\n"))
	if err != nil || got[kubernetesModule] != "v1.2.3" || got[etcdModule] != "v3.4.5" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := requiredVersions([]byte("module m\n")); err == nil {
		t.Error("no error although the versions are missing")
	}
}

// TestFingerprintNamesThePrograms: a directory from before a program was added
// is not taken for a complete one.
func TestFingerprintNamesThePrograms(t *testing.T) {
	all, fewer := fingerprint(nil, commands, nil), fingerprint(nil, commands[1:], nil)
	if all == fewer {
		t.Errorf("both %d and %d programs have the fingerprint %s", len(commands), len(commands)-1, all)
	}
}
