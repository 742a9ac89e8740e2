package controller

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// apply makes the tunnel exist and its document the wanted one. It returns how
// that went and when to come back.
func (ts *tunnels) apply(
	ctx context.Context, t *tunnel, g *gatewayv1.Gateway, settings *gateway.Settings, want provider.Configuration,
) (gateway.Push, time.Duration) {
	t.settings = settings
	if t.leaving {
		t.leaving, t.fault, t.turn = false, fault{}, awaited{}
	}
	document := want.Hash()
	if paused(g) {
		return ts.pause(ctx, t, g, document)
	}
	err := ts.use(ctx, t)
	if err == nil {
		if wait := max(t.fault.wait(ts.now(), document), t.turn.wait(ts.now(), document)); wait > 0 {
			return t.waiting(document), wait
		}
		ts.settleDoubt(t, g)
		err = ts.bring(ctx, t, g, want)
	}
	return ts.applied(ctx, t, g, document, err)
}

// bring makes the tunnel exist and writes its document.
func (ts *tunnels) bring(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, want provider.Configuration) error {
	err := ts.ensure(ctx, t, g)
	if err == nil {
		err = ts.configure(ctx, t, g, want)
	}
	switch {
	case err == nil:
		t.local = false
	case errors.Is(err, provider.ErrLocallyManaged):
		// Before anything is written, it is read whether that has been mended.
		t.local, t.remote.known, t.inEffect = true, false, ""
		existing := t.settings.ExistingTunnel()
		return &localError{tunnel: cmp.Or(string(t.record.Tunnel), string(existing), ts.tunnelName(t, g)), existing: existing != ""}
	}
	return err
}

// applied draws the conclusion from an attempt.
func (ts *tunnels) applied(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, document string, err error) (gateway.Push, time.Duration) {
	limit := limitOf(err)
	switch {
	case err == nil:
		if t.fault.message != "" {
			ts.event(g, corev1.EventTypeNormal, "Recovered", "Push", "The tunnel's configuration is in effect again.")
		}
		t.fault, t.turn, t.inEffect = fault{}, awaited{}, document
		return gateway.Push{State: gateway.PushSucceeded}, ts.untilRead(t)
	case ctx.Err() != nil || errors.Is(err, errGone):
		// The controller ends, or there is nobody to speak about.
		t.remote.known = false
		return gateway.Push{State: gateway.PushOutstanding}, 0
	case limit != nil && (limit.Budget || t.fault.message == ""):
		ts.delay(ctx, t, g, limit, document)
		return t.waiting(document), limit.RetryAfter
	}
	message, wait := ts.failed(ctx, t, g, err, &t.fault, attempt{
		outcome: outcomeKept, event: "PushFailed", action: "Push",
		log: "the tunnel is not up to date", document: document,
	})
	if !t.fault.needsPerson {
		// What the API holds is not known any more.
		t.remote.known = false
	}
	return t.unfinished(document, message), wait
}

// hasRecorded reports whether the document was written, as far as the record
// tells and this process knows.
func (t *tunnel) hasRecorded(document string) bool {
	return t.record.Hash == document && t.unanswered != document
}

// outcomeKept is what it means for a tunnel that a push is not carried out.
const outcomeKept = "The tunnel keeps its last configuration."

// unfinished returns what it means for the wanted document that nothing more
// was done about it, and why: one that is in effect already stays in effect.
func (t *tunnel) unfinished(document, why string) gateway.Push {
	switch {
	case t.inEffect == document:
		return gateway.Push{State: gateway.PushSucceeded}
	case why == "", t.hasRecorded(document) && !t.fault.needsPerson:
		// It only waits for its turn; or an earlier process wrote it, as far as
		// the record tells.
		return gateway.Push{State: gateway.PushOutstanding, Message: why}
	default:
		return gateway.Push{State: gateway.PushFailed, Message: why}
	}
}

// pause leaves everything at Cloudflare as it is, and only looks at it. Whoever
// pauses a Gateway has also seen what was wrong with it.
func (ts *tunnels) pause(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, document string) (gateway.Push, time.Duration) {
	t.fault, t.edits = fault{}, edits{}
	if ts.ownTunnel(t) != "" && t.record.Contested {
		record := t.record
		record.Contested = false
		if err := ts.writeRecord(ctx, t, g, record); err != nil {
			log.FromContext(ctx).Error(err, "the pause is not recorded", "again", lastRetry.String())
			return t.unfinished(document, state.MessagePaused), lastRetry
		}
	}
	wait := ts.look(ctx, t, document)
	push := t.unfinished(document, state.MessagePaused)
	push.Message = state.MessagePaused
	return push, wait
}

// look finds out whether the document is in effect, as far as that can be
// known, and returns when to look again.
func (ts *tunnels) look(ctx context.Context, t *tunnel, document string) time.Duration {
	if err := ts.use(ctx, t); err != nil || ts.ownTunnel(t) == "" || t.record.Account != t.account.id {
		return 0
	}
	if err := ts.refresh(ctx, t, document); err != nil {
		if limit := limitOf(err); limit != nil {
			return limit.RetryAfter
		}
		return lastRetry
	}
	if t.inEffect = ""; t.remote.document.Hash() == document {
		t.inEffect = document
	}
	return ts.untilRead(t)
}

// configure writes the document unless the tunnel has it already.
func (ts *tunnels) configure(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, want provider.Configuration) error {
	wanted := want.Hash()
	err := ts.refresh(ctx, t, wanted)
	if errors.Is(err, provider.ErrNotFound) {
		if err = ts.lost(ctx, t, g); err == nil {
			err = ts.refresh(ctx, t, wanted)
		}
	}
	if err != nil {
		return err
	}
	if t.remote.document.Hash() == wanted {
		t.edits.standing = false // whoever changed it has taken that back
		if t.record.Knows(wanted) {
			return nil
		}
		return ts.writeRecord(ctx, t, g, t.record.Writing(wanted, ""))
	}
	t.inEffect = ""
	record, err := ts.mayReplace(ctx, t, g, want)
	if err != nil {
		return err
	}
	if err := ts.prove(ctx, t, g); err != nil {
		return err
	}
	record.Late = t.remote.pending(ts.now())
	if err := ts.writeRecord(ctx, t, g, record); err != nil {
		return err
	}
	return ts.write(ctx, t, want)
}

// write replaces the document.
func (ts *tunnels) write(ctx context.Context, t *tunnel, want provider.Configuration) error {
	want.Unmodelled = t.remote.document.Unmodelled
	t.pace.pushed(ts.now())
	t.unanswered = t.record.Hash // until the answer comes
	r := &t.remote
	version, err := t.account.provider.Configure(ctx, t.record.Tunnel, want)
	if err != nil {
		if _, unknown := errors.AsType[*provider.UnavailableError](err); unknown {
			r.mayArrive(t.record.Hash, ts.now())
		}
		return err
	}
	t.unanswered = ""
	t.happened.pushed = append(t.happened.pushed, want.Size())
	t.happened.repaired = t.happened.repaired || t.edits.standing
	t.edits.standing = false
	// A version that is not the next one means that somebody else wrote in
	// between; whose document came last has to be read.
	r.known = version == r.version+1
	log.FromContext(ctx).Info("wrote the tunnel's configuration", "tunnel", t.record.Tunnel,
		"rules", len(want.Ingress), "version", version, "expected", r.version+1)
	r.document, r.version = want, version
	r.settle(ts.now())
	return nil
}
