package provider

import (
	"context"
	"time"
)

type waitsKey struct{}

// WithWaitReporter returns a context whose calls tell of every wait for a share of the
// API token's budget that they spent, and not of one that they were told to
// spend elsewhere: that is the [RateLimitedError] that they return.
func WithWaitReporter(ctx context.Context, tell func(time.Duration)) context.Context {
	return context.WithValue(ctx, waitsKey{}, tell)
}

// ReportWait is for providers: it tells whoever asked for it in [WithWaitReporter] that a
// call has waited.
func ReportWait(ctx context.Context, wait time.Duration) {
	if tell, ok := ctx.Value(waitsKey{}).(func(time.Duration)); ok {
		tell(wait)
	}
}
