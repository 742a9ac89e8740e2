package provider

import (
	"context"
	"time"
)

type waitReporterKey struct{}

// WithWaitReporter returns a context whose calls report how long they waited for the
// API request budget. report is called once for each wait, when the wait ends. A
// call that returns a [*RateLimitedError] instead of waiting reports nothing.
func WithWaitReporter(ctx context.Context, report func(time.Duration)) context.Context {
	return context.WithValue(ctx, waitReporterKey{}, report)
}

// ReportWait reports to the function given to [WithWaitReporter], if any, that a
// call waited. Only providers call it.
func ReportWait(ctx context.Context, wait time.Duration) {
	if report, ok := ctx.Value(waitReporterKey{}).(func(time.Duration)); ok {
		report(wait)
	}
}
