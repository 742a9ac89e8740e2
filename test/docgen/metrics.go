package main

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/test/docgen/markdown"
)

//go:embed metrics.head.md
var metricsHead string

// metricsPages returns the page that documents the controller's metrics.
func metricsPages() ([]page, error) {
	return []page{{"metrics.md", metricsHead + metricTables(metrics.All)}}, nil
}

// metricTables returns a table with all metrics, and a table for each label with fixed
// values.
func metricTables(all []metrics.Metric) string {
	t := markdown.NewTable("Name", "Type", "Labels", "Unit", "Meaning")
	var labels strings.Builder
	for _, m := range all {
		t.Add(markdown.Code(m.Name), string(m.Type), labelNames(m), m.Unit, markdown.Escape(m.Help+bucketRange(m)))
		for _, label := range m.Labels {
			if len(label.Values) > 0 {
				labels.WriteString(labelTable(m, label))
			}
		}
	}
	return "\n## Metrics\n\n" + t.String() + "\n## Labels\n" + labels.String()
}

func labelNames(m metrics.Metric) string {
	names := make([]string, len(m.Labels))
	for i, label := range m.Labels {
		names[i] = markdown.Code(label.Name)
	}
	return strings.Join(names, " ")
}

// bucketRange returns a sentence with a histogram's lowest and highest bucket.
func bucketRange(m metrics.Metric) string {
	if len(m.Buckets) == 0 {
		return ""
	}
	return fmt.Sprintf(" Buckets from %v to %v.", m.Buckets[0], m.Buckets[len(m.Buckets)-1])
}

// labelTable returns a table with a label's values.
func labelTable(m metrics.Metric, label metrics.Label) string {
	t := markdown.NewTable("Value", "Meaning")
	for _, value := range label.Values {
		t.Add(markdown.Code(value.Name), markdown.Escape(value.Help))
	}
	return fmt.Sprintf("\n%s on %s: %s.\n\n%s", markdown.Code(label.Name), markdown.Code(m.Name), label.Help, t)
}
