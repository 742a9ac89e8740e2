package cluster_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCallersSetTheLogger checks that every package that starts a cluster sets
// controller-runtime's logger. Otherwise controller-runtime prints a warning with a stack
// trace if the start takes more than 30 seconds.
func TestCallersSetTheLogger(t *testing.T) {
	// The call is not a literal here, so that this file does not count as a caller.
	const start, set = "= cluster." + "Start(", ".Set" + "Logger("
	starts, sets := map[string]bool{}, map[string]bool{}
	files := os.DirFS("..")
	err := fs.WalkDir(files, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		starts[dir] = starts[dir] || strings.Contains(string(text), start)
		sets[dir] = sets[dir] || strings.Contains(string(text), set)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for dir, start := range starts {
		if start {
			found++
		}
		if start && !sets[dir] {
			t.Errorf("%s starts a cluster but does not set the logger of controller-runtime", dir)
		}
	}
	if found == 0 {
		t.Error("no package that starts a cluster was found")
	}
}
