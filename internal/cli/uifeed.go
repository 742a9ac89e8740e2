package cli

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/mirror"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/web"
)

const (
	// settle is how long the page waits for further changes after the first one. A kubectl
	// apply with several objects then becomes one change.
	settle = 50 * time.Millisecond
	// pollFiles is how often the page looks for changes of the manifests.
	pollFiles = time.Second
	// maxAge is how old a plan becomes without changes: certificates expire.
	maxAge = 5 * time.Minute
	// retryFailed is how long the page waits until it reads again after an error.
	retryFailed = 3 * time.Second
)

// uiFeed keeps what the page shows current.
type uiFeed struct {
	*web.Feed
	reader *sourceReader
	files  *manifestFiles
	diff   *diffOptions
	// mirror is nil without a cluster.
	mirror *mirror.Mirror
	known  state.Inspections
	// shown identifies the files that the newest plan was made from, or failed for.
	shown string
}

// follow publishes a plan after each change until ctx ends. The first plan must have been
// published.
func (f *uiFeed) follow(ctx context.Context) {
	debug.SetGCPercent(40)
	wait := maxAge
	for f.awaitChange(ctx, wait) {
		started := time.Now()
		wait = maxAge
		if err := f.update(ctx); err != nil && ctx.Err() == nil {
			f.Fail(err.Error())
			wait = retryFailed
		}
		// A cluster that changes all the time gets two thirds of the time of a CPU.
		pause := time.Since(started) / 2
		debug.FreeOSMemory() // a plan leaves more garbage than the page needs memory
		sleep(ctx, pause)
	}
}

// awaitChange waits for a change, at most for the time, and for what changes with it. It returns
// false after ctx has ended.
func (f *uiFeed) awaitChange(ctx context.Context, limit time.Duration) bool {
	timeout, files := time.NewTimer(limit), time.NewTicker(pollFiles)
	defer timeout.Stop()
	defer files.Stop()
	var cluster <-chan struct{} // blocks without a cluster
	if f.mirror != nil {
		cluster = f.mirror.Changed()
	}
	for waiting := true; waiting; {
		select {
		case <-ctx.Done():
			return false
		case <-timeout.C:
			waiting = false
		case <-cluster:
			waiting = false
		case <-files.C:
			waiting = !f.files.changed(f.shown)
		}
	}
	sleep(ctx, settle)
	select {
	case <-cluster: // the next plan contains the change
	default:
	}
	return ctx.Err() == nil
}

// update publishes a plan, unless the API server cannot be reached.
func (f *uiFeed) update(ctx context.Context) error {
	if f.mirror == nil {
		return f.publish(ctx, progress.New(io.Discard))
	}
	connected, cancel := context.WithCancel(ctx)
	defer cancel()
	go f.cancelIfLost(connected, cancel)
	err := f.publish(connected, progress.New(io.Discard))
	if lost := f.mirror.Lost(); lost != nil {
		return fmt.Errorf("no connection to the API server: %w", lost)
	}
	return err
}

// cancelIfLost calls cancel when the API server cannot be reached, until ctx ends.
func (f *uiFeed) cancelIfLost(ctx context.Context, cancel context.CancelFunc) {
	for ctx.Err() == nil {
		if f.mirror.Lost() != nil {
			cancel()
		}
		sleep(ctx, time.Second)
	}
}

// publish reads the cluster and the manifests, and publishes a plan for them.
func (f *uiFeed) publish(ctx context.Context, line *progress.Line) error {
	now := time.Now()
	f.shown = f.files.fingerprint()
	source, err := f.read(ctx, line)
	if err != nil {
		return err
	}
	defer line.Step("building the plan")()
	built, err := plan.Build(ctx, source, f.reader.options(), now)
	if err != nil {
		return err
	}
	before, err := f.before(ctx, source, now)
	if err != nil {
		return err
	}
	warnings, notes := sourceWarnings(source)
	f.Publish(&web.Snapshot{
		Plan: built, Before: before, Warnings: slices.Concat(warnings, notes), Time: now,
		Compare: f.diff.comparison(func(ctx context.Context) (*state.Source, error) { return f.read(ctx, progress.New(io.Discard)) }, f.reader.options()),
	})
	return nil
}

func (f *uiFeed) read(ctx context.Context, line *progress.Line) (*state.Source, error) {
	source, err := f.reader.read(ctx, line)
	if err == nil && source.Live {
		source.Certificates.Know(&f.known)
	}
	return source, err
}

// before returns the plan without the manifests; nil unless they are shown on top of a cluster.
func (f *uiFeed) before(ctx context.Context, source *state.Source, now time.Time) (*plan.Plan, error) {
	unchanged, err := source.WithoutManifests()
	if err != nil || unchanged == nil {
		return nil, err
	}
	unchanged.Certificates.AssumeMissing = f.reader.assumeSecrets
	unchanged.Certificates.Know(&f.known)
	return plan.Build(ctx, unchanged, f.reader.options(), now)
}

// sleep waits for the time or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
