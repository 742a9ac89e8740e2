package binaries

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

const (
	progressInterval = 5 * time.Second
	// lockInterval is the interval between attempts to acquire the lock.
	lockInterval = 200 * time.Millisecond
)

// cacheDir returns the directory with the programs for all clones.
func cacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the user's cache directory: %w", err)
	}
	return filepath.Join(dir, "tunnel-gateway"), nil
}

// cacheEntry is a directory in the cache. All clones and processes share it.
type cacheEntry struct {
	dir      string
	title    string   // what the directory contains, in progress messages
	programs []string // the files that a complete entry has
	progress io.Writer
}

// has reports whether the entry contains the program.
func (c cacheEntry) has(program string) bool {
	info, err := os.Stat(filepath.Join(c.dir, program))
	return err == nil && info.Mode().IsRegular()
}

// isComplete reports whether the entry contains all its programs.
func (c cacheEntry) isComplete() bool {
	return !slices.ContainsFunc(c.programs, func(program string) bool { return !c.has(program) })
}

// fill creates the entry with create, unless it is complete. create writes to a directory
// that is renamed at the end, so that an interrupted call never looks complete.
// Other processes wait meanwhile.
func (c cacheEntry) fill(ctx context.Context, create func(dir string) error) error {
	if err := os.MkdirAll(filepath.Dir(c.dir), 0o750); err != nil {
		return err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if c.isComplete() {
		return nil
	}
	partial := c.dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.Mkdir(partial, 0o750); err != nil {
		return err
	}
	if err := create(partial); err != nil {
		return err
	}
	// Cleanup tools may have deleted programs from the directory.
	if err := os.RemoveAll(c.dir); err != nil {
		return err
	}
	return os.Rename(partial, c.dir)
}

// lock acquires the entry's lock, and waits while another process has it.
func (c cacheEntry) lock(ctx context.Context) (unlock func(), err error) {
	done := reportProgress(func(waited time.Duration) {
		fmt.Fprintf(c.progress, "%s: waiting for another process (%s)\n", c.title, waited)
	})
	defer done()
	lock := flock.New(c.dir + ".lock")
	if _, err := lock.TryLockContext(ctx, lockInterval); err != nil {
		return nil, fmt.Errorf("acquire the lock %s: %w", lock.Path(), err)
	}
	return func() { _ = lock.Close() }, nil
}

// reportProgress calls report at each progressInterval with the time since the call. The returned
// function stops it.
func reportProgress(report func(passed time.Duration)) (stop func()) {
	start, stopped, finished := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report(elapsed(start))
			case <-stopped:
				return
			}
		}
	}()
	return func() { close(stopped); <-finished }
}

func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }
