package progress

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// output returns what a step with the given duration prints.
func output(t *testing.T, width int, name string, duration time.Duration) string {
	t.Helper()
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		line := &Line{w: &out, width: func() int { return width }}
		done := line.Step(name)
		<-time.After(duration)
		done()
	})
	return out.String()
}

const erased = "\r\x1b[K"

func TestStepShowsTheSecondsOfASlowStep(t *testing.T) {
	for name, test := range map[string]struct {
		width    int
		duration time.Duration
		want     string
	}{
		"a fast step shows nothing":                       {80, 999 * time.Millisecond, ""},
		"a slow step shows its seconds":                   {80, 2500 * time.Millisecond, "\rreading, 1 s\x1b[K\rreading, 2 s\x1b[K" + erased},
		"a long name is truncated":                        {8, 1500 * time.Millisecond, "\rreading\x1b[K" + erased},
		"a fast step writes nothing to a file":            {0, 999 * time.Millisecond, ""},
		"a slow step writes a line to a file":             {0, 1500 * time.Millisecond, "reading ...\n"},
		"a very slow step writes only one line to a file": {0, time.Minute, "reading ...\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := output(t, test.width, "reading", test.duration); got != test.want {
				t.Errorf("wrote %q, want %q", got, test.want)
			}
		})
	}
}

func TestStepCutsAtTheTerminalWidth(t *testing.T) {
	// The terminal width limits characters, not bytes.
	if got := output(t, 4, "größer", 1500*time.Millisecond); !strings.HasPrefix(got, "\rgrö\x1b[K") {
		t.Errorf("wrote %q, want the first three characters", got)
	}
}

func TestStepsReplaceEachOther(t *testing.T) {
	var out bytes.Buffer
	synctest.Test(t, func(*testing.T) {
		line := &Line{w: &out, width: func() int { return 80 }}
		for _, name := range []string{"reading", "building"} {
			done := line.Step(name)
			<-time.After(1500 * time.Millisecond)
			done()
		}
	})
	if want := "\rreading, 1 s\x1b[K" + erased + "\rbuilding, 1 s\x1b[K" + erased; out.String() != want {
		t.Errorf("wrote %q, want %q", out.String(), want)
	}
}

func TestNewDetectsATerminal(t *testing.T) {
	// A writer that is not a terminal receives no control characters.
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if width := New(file).width(); width != 0 {
		t.Errorf("a file is %d columns wide, want 0", width)
	}
	if width := New(&bytes.Buffer{}).width(); width != 0 {
		t.Errorf("a buffer is %d columns wide, want 0", width)
	}
}
