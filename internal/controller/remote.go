package controller

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// remote is what is known of the document that the API holds.
type remote struct {
	known    bool // false when it has to be read before anything else
	document provider.Configuration
	version  provider.Version
	readAt   time.Time // when it is to be read again

	// late are the hashes of documents whose writes may arrive until the time
	// settled: the caller went away before the answer came, with an earlier
	// process or with its patience.
	late    []string
	settled time.Time
}

// created is what is known of a tunnel that was made just now.
func created(now, readAt time.Time) remote {
	return remote{known: true, readAt: readAt, settled: now}
}

// sooner brings the next reading forward.
func (r *remote) sooner(then time.Time) {
	if then.Before(r.readAt) {
		r.readAt = then
	}
}

// mayArrive notes a write whose answer will not be seen.
func (r *remote) mayArrive(document string, now time.Time) {
	if document != "" && !r.wrote(document) {
		r.late = append(r.late, document)
	}
	r.settled = now.Add(provider.CallTimeout)
}

// settle makes sure, after a write, that the document is read once more when
// nothing can arrive late any more: what was written may be replaced until then.
func (r *remote) settle(now time.Time) {
	if now.Before(r.settled) {
		r.sooner(r.settled.Add(time.Second))
	} else {
		r.late = nil
	}
}

// pending returns the last document that may arrive late, or "".
func (r *remote) pending(now time.Time) string {
	if len(r.late) == 0 || !now.Before(r.settled) {
		return ""
	}
	return r.late[len(r.late)-1]
}

// wrote reports whether a document came by a write of ours that was late.
func (r *remote) wrote(document string) bool { return slices.Contains(r.late, document) }

// refresh reads the document when that is due.
func (ts *tunnels) refresh(ctx context.Context, t *tunnel, want string) error {
	if t.remote.known && ts.now().Before(t.remote.readAt) {
		return nil
	}
	ctx = provider.WithPriority(ctx, t.readPriority(want))
	err := ts.read(ctx, t)
	if limit := limitOf(err); limit != nil && t.remote.known {
		// Nothing is known to have changed; the look can wait.
		t.remote.readAt = ts.now().Add(limit.RetryAfter)
		return nil
	}
	return err
}

// readPriority: a document that is known is read to see whether it drifted,
// and one that should be right already to make sure after a start.
func (t *tunnel) readPriority(want string) provider.Priority {
	switch {
	case t.remote.known:
		return provider.PriorityDrift
	case t.hasRecorded(want):
		return provider.PriorityStart
	default:
		return provider.PriorityChange
	}
}

func (ts *tunnels) read(ctx context.Context, t *tunnel) error {
	document, version, err := t.account.provider.Configuration(ctx, t.record.Tunnel)
	if err != nil {
		return err
	}
	now, r := ts.now(), &t.remote
	if r.settled.IsZero() { // an earlier process may have had a write under way
		r.mayArrive(t.record.Late, now)
		r.mayArrive(t.record.Hash, now)
	}
	r.known, r.document, r.version, r.readAt = true, document, version, ts.nextRead()
	arrived := len(r.late) == 0 || len(r.late) == 1 && r.wrote(document.Hash())
	if !arrived && now.Before(r.settled) {
		r.sooner(r.settled.Add(time.Second))
	}
	if t.edits.recent(now) {
		r.sooner(now.Add(suspicion))
	}
	return nil
}

// nextRead spreads the reads of many tunnels.
func (ts *tunnels) nextRead() time.Time {
	jitter := time.Duration(rand.Int64N(int64(ts.driftInterval)/5 + 1)) // #nosec G404 -- not for security
	return ts.now().Add(ts.driftInterval - jitter)
}

func (ts *tunnels) untilRead(t *tunnel) time.Duration {
	if !t.remote.known {
		return time.Second
	}
	return max(t.remote.readAt.Sub(ts.now()), time.Second)
}
