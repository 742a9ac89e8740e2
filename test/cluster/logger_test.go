package cluster_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCallersSetTheLogger checks that every package that starts a cluster sets the
// logger of controller-runtime. Otherwise controller-runtime prints a warning with
// a stack trace if the start takes more than 30 seconds.
func TestCallersSetTheLogger(t *testing.T) {
	expectedToFail(t, "the packages rely on a start within 30 seconds", func() (failures []string) {
		starts, sets := map[string]bool{}, map[string]bool{}
		err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			dir := filepath.Dir(path)
			starts[dir] = starts[dir] || strings.Contains(string(text), "= cluster.Start(")
			sets[dir] = sets[dir] || strings.Contains(string(text), "SetLogger(")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for dir := range starts {
			if starts[dir] && !sets[dir] {
				failures = append(failures, dir+" starts a cluster without a logger")
			}
		}
		return failures
	})
}

// expectedToFail fails the test if the checks report no failure.
func expectedToFail(t *testing.T, reason string, checks func() (failures []string)) {
	t.Helper()
	failures := checks()
	if len(failures) == 0 {
		t.Errorf("passes now; remove the mark %q", reason)
	}
	for _, failure := range failures {
		t.Logf("expected failure: %s", failure)
	}
}
