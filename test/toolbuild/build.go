package toolbuild

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	// progressInterval is the interval of the progress messages of a build.
	progressInterval = 5 * time.Second
	// lockInterval is the interval between attempts to acquire the lock.
	lockInterval = 200 * time.Millisecond
)

// build builds one set of programs.
type build struct {
	set       Set
	plan      Plan
	moduleDir string // where `go build` runs
	dir       string // where the binaries go
	progress  io.Writer
}

// ensure builds the binaries unless they exist. It renames the directory when all
// binaries are built, so that an interrupted build never looks complete.
func (b *build) ensure(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(b.dir), 0o750); err != nil {
		return err
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()

	if _, err := os.Stat(b.dir); err == nil {
		b.logf("%s (cached)", b.plan.Title)
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.logf("building %s; this takes %s, once per machine", b.plan.Title, b.set.BuildTime)
	partial := b.dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	start := time.Now()
	for _, p := range b.set.Programs {
		if err := b.compile(ctx, p, partial, start); err != nil {
			return err
		}
	}
	if err := os.Rename(partial, b.dir); err != nil {
		return err
	}
	b.logf("built in %s, cached in %s", elapsed(start), b.dir)
	return nil
}

// logf writes a progress message.
func (b *build) logf(format string, a ...any) {
	fmt.Fprintf(b.progress, b.set.Name+": "+format+"\n", a...)
}

// lock acquires the lock of the set, and waits while another process has it.
func (b *build) lock(ctx context.Context) (unlock func(), err error) {
	done := reportEvery(progressInterval, func(waited time.Duration) {
		b.logf("waiting for the build of another process (%s)", waited)
	})
	defer done()
	lock := flock.New(b.dir + ".lock")
	if _, err := lock.TryLockContext(ctx, lockInterval); err != nil {
		return nil, fmt.Errorf("acquire the lock %s: %w", lock.Path(), err)
	}
	return func() { _ = lock.Close() }, nil
}

// compile builds one program into dir.
func (b *build) compile(ctx context.Context, p Program, dir string, start time.Time) error {
	done := reportEvery(progressInterval, func(time.Duration) {
		b.logf("building %s (%s)", p.Name, elapsed(start))
	})
	defer done()
	args := append([]string{"build"}, b.plan.Flags...)
	args = append(args, "-o", filepath.Join(dir, p.Name), p.ImportPath)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.moduleDir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", p.ImportPath, err, output)
	}
	return nil
}

// reportEvery calls report at each interval with the time since the call. The returned
// function stops it.
func reportEvery(interval time.Duration, report func(passed time.Duration)) (stop func()) {
	start, stopped, finished := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		ticker := time.NewTicker(interval)
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
