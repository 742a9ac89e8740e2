package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	// mostEdits by somebody else within editWindow are one writer too many.
	mostEdits  = 3
	editWindow = 10 * time.Minute
	// suspicion is how often a document is read for an editWindow after it was put
	// right: whoever changed it may do so again, and three within the window are
	// to be seen as three.
	suspicion = time.Minute
)

// edits are somebody else's changes that were noticed.
type edits struct {
	times []time.Time
	// last is the version of the last one. It is noticed once, however often
	// putting it right fails.
	last provider.Version
	// standing: the last one is not put right yet.
	standing bool
}

// add notes the change to that version.
func (e *edits) add(version provider.Version, now time.Time) {
	e.times = slices.DeleteFunc(e.times, func(t time.Time) bool { return now.Sub(t) >= editWindow })
	e.times, e.last, e.standing = append(e.times, now), version, true
}

func (e *edits) tooMany() bool { return len(e.times) >= mostEdits }

// recent reports whether there was one so lately that the next may count with it.
func (e *edits) recent(now time.Time) bool {
	return len(e.times) > 0 && now.Sub(e.times[len(e.times)-1]) < editWindow
}

// mayReplace decides about the document that the tunnel holds when it is not
// the wanted one, and returns the record for replacing it. What somebody else
// wrote is put right on a tunnel that is ours, and on another one when a user
// permits it; but there is no fight.
func (ts *tunnels) mayReplace(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, want provider.Configuration) (state.Record, error) {
	record, have := t.record, t.remote.document.Hash()
	known := t.remote.version == 0 || record.Knows(have) || t.remote.wrote(have)
	switch {
	case record.Contested:
		return record, &contestedError{tunnel: record.Tunnel}
	case known:
	case !record.MayReplace() && !takeover(g):
		return record, &foreignError{tunnel: record.Tunnel}
	case !record.MayReplace():
		record.TakenOver = true
		ts.event(g, corev1.EventTypeNormal, "TakenOver", "Push",
			fmt.Sprintf("The configuration of tunnel %s is replaced, as the annotation %s permits.", record.Tunnel, state.TakeoverAnnotation))
	case record.Hash == "":
		// It was found by its name; what it holds is from before the record.
	default:
		return ts.foreignEdit(ctx, t, g, want)
	}
	return record.Writing(want.Hash(), have), nil
}

// foreignEdit tells of a change that somebody else made, and stops when there
// are too many of them.
func (ts *tunnels) foreignEdit(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, want provider.Configuration) (state.Record, error) {
	record, now := t.record, ts.now()
	if t.edits.last == t.remote.version {
		return record.Writing(want.Hash(), ""), nil
	}
	t.edits.add(t.remote.version, now)
	differences := strings.Join(provider.Differences(t.remote.document, want), "; ")
	if t.edits.tooMany() {
		record.Contested = true
		if err := ts.writeRecord(ctx, t, g, record); err != nil {
			return record, err
		}
		t.happened.fought, t.edits.standing = true, false
		ts.event(g, corev1.EventTypeWarning, "DriftFight", "Push", fmt.Sprintf(
			"The configuration of tunnel %s was changed by somebody else again, the last time so: %s", record.Tunnel, differences))
		return record, &contestedError{tunnel: record.Tunnel}
	}
	t.remote.sooner(now.Add(suspicion))
	ts.event(g, corev1.EventTypeWarning, "ForeignEdit", "Push", fmt.Sprintf(
		"The configuration of tunnel %s was changed by somebody else and is put right: %s", record.Tunnel, differences))
	return record.Writing(want.Hash(), ""), nil // the same edit may come again, and is no more known then
}

// contestedError: somebody else keeps changing the document.
type contestedError struct{ tunnel provider.TunnelID }

func (e *contestedError) Error() string {
	return fmt.Sprintf("somebody else has changed the configuration of tunnel %s %d times within %d minutes, so the controller has stopped writing it; "+
		"find the other writer, perhaps another cluster with the same --cluster-id, then set the annotation %s: \"true\" on the Gateway and take it off again",
		e.tunnel, mostEdits, int(editWindow.Minutes()), state.PausedAnnotation)
}

// foreignError: the tunnel holds a document that we did not write, and nobody
// has permitted to replace it.
type foreignError struct{ tunnel provider.TunnelID }

func (e *foreignError) Error() string {
	return fmt.Sprintf("tunnel %s was not made by this controller and holds a configuration that it did not write; "+
		"set the annotation %s: \"true\" on the Gateway to have it replaced", e.tunnel, state.TakeoverAnnotation)
}
