package provider_test

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestWaitReporterReceivesWaits(t *testing.T) {
	provider.ReportWait(t.Context(), time.Second) // a context without a reporter
	var reported time.Duration
	provider.ReportWait(provider.WithWaitReporter(t.Context(), func(wait time.Duration) { reported += wait }), time.Second)
	if reported != time.Second {
		t.Errorf("reported wait = %s, want 1s", reported)
	}
}
