package conformance

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEndOfTheLogBeginsWithTheCrash(t *testing.T) {
	file := filepath.Join(t.TempDir(), "suite.log")
	goroutines := strings.Repeat("goroutine 1 [running]:\n", 500)
	must(t, os.WriteFile(file, []byte("=== RUN   TestSuite\nfatal error: concurrent map writes\n"+goroutines), 0o600))
	if got := end(t, file); !strings.HasPrefix(got, "fatal error: concurrent map writes\n") || len(got) > 2000 {
		t.Errorf("got %q", got)
	}
}

func TestEndOfTheLogHasTheLastLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "suite.log")
	must(t, os.WriteFile(file, []byte(strings.Repeat("    suite.go:1: waiting\n", 500)+"signal: killed\n"), 0o600))
	if got := end(t, file); !strings.HasSuffix(got, "signal: killed\n") || len(got) > 2000 {
		t.Errorf("got %q", got)
	}
}
