package provider_test

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

func TestWaits(t *testing.T) {
	provider.ReportWait(t.Context(), time.Second) // nobody asked
	var told time.Duration
	provider.ReportWait(provider.WithWaitReporter(t.Context(), func(wait time.Duration) { told += wait }), time.Second)
	if told != time.Second {
		t.Errorf("a wait of %s was told", told)
	}
}
