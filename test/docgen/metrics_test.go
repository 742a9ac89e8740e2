package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

func TestMetricTablesListMetricsAndLabelValues(t *testing.T) {
	result := metrics.Label{Name: "result", Help: "the outcome", Values: []metrics.Value{{Name: "failed", Help: "a|b"}}}
	got := metricTables([]metrics.Metric{
		{Name: "calls_total", Type: metrics.Counter, Unit: "calls", Help: "Calls.", Labels: []metrics.Label{{Name: "account"}, result}},
		{Name: "wait_seconds", Type: metrics.Histogram, Unit: "seconds", Help: "Waits.", Buckets: []float64{0.5, 1, 10}},
	})
	want := `
## Metrics

| Name | Type | Labels | Unit | Meaning |
|---|---|---|---|---|
| ` + "`calls_total` | counter | `account` `result`" + ` | calls | Calls. |
| ` + "`wait_seconds`" + ` | histogram |  | seconds | Waits. Buckets from 0.5 to 10. |

## Labels

` + "`result` on `calls_total`" + `: the outcome.

| Value | Meaning |
|---|---|
| ` + "`failed`" + ` | a\|b |
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tables (-want +got):\n%s", diff)
	}
}
