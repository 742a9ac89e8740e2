package controller

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// limitOf returns the limit that kept a call from being carried out, or nil.
func limitOf(err error) *provider.RateLimitedError {
	limit, _ := errors.AsType[*provider.RateLimitedError](err)
	return limit
}

// itsTurn reports whether a call only has to wait for its share of the budget,
// and how long.
func itsTurn(err error) (time.Duration, bool) {
	limit := limitOf(err)
	if limit == nil || !limit.Budget {
		return 0, false
	}
	return limit.RetryAfter, true
}

// awaited is a turn in the budget that an attempt was promised. Who asks earlier
// is put at the end of the queue, and leaves a hole in it. Or it is the end of a
// limit of the API, for whatever is wanted then.
type awaited struct {
	until time.Time
	// document is the one that the turn is good for, or empty for any: the turn
	// to read back after a start is later than that of a change.
	document string
	// limit says what the API limits and until when; empty for a turn.
	limit string
}

// wait returns how long the turn is away. A document that it is not good for has
// not asked yet.
func (a *awaited) wait(now time.Time, document string) time.Duration {
	if a.document != "" && a.document != document {
		return 0
	}
	return max(a.until.Sub(now), 0)
}

// delay puts a push off, which has not failed by that: the last document stays
// in effect. A limit of the API is told once, since a person may find out who
// else spends what Cloudflare admits.
func (ts *tunnels) delay(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, limit *provider.RateLimitedError, document string) {
	told := t.turn.limit != ""
	t.turn = awaited{until: ts.now().Add(limit.RetryAfter)}
	if limit.Budget {
		if t.readPriority(document) == provider.PriorityStart {
			t.turn.document = document
		}
		return
	}
	t.turn.limit = tryAgain(explain(limit), limit.RetryAfter)
	if told {
		return
	}
	ts.event(g, corev1.EventTypeWarning, "PushDelayed", "Push", outcomeKept+" "+t.turn.limit)
	logFault(ctx, limit, "the push is put off", t.record.Tunnel, limit.RetryAfter)
}

// waiting is [tunnel.unfinished] while nothing is tried.
func (t *tunnel) waiting(document string) gateway.Push {
	push := t.unfinished(document, t.fault.message)
	if push.State == gateway.PushOutstanding {
		push.Message = cmp.Or(push.Message, t.turn.limit)
	}
	return push
}
