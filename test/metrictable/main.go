// Command metrictable writes docs/metrics.md: every metric of the controller, from
// its definition. It runs from the folder of package metrics, through go generate.
//
// Only the page belongs here: its head is written by hand and stands beside this
// file; what a metric means is said where it is defined.
package main

import (
	_ "embed"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

const page = "../../docs/metrics.md"

//go:embed head.md
var head string

func main() {
	log.SetFlags(0)
	if err := os.WriteFile(page, []byte(head+tables(metrics.All)), 0o644); err != nil {
		log.Fatalf("metrictable: %v", err)
	}
}

// tables are the metrics, and under them the values of their labels.
func tables(all []metrics.Metric) string {
	var b strings.Builder
	b.WriteString("\n## Metrics\n\n| Name | Type | Labels | Unit | Meaning |\n|---|---|---|---|---|\n")
	for _, m := range all {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.Name, m.Type, names(m), m.Unit, escape.Replace(m.Help+buckets(m)))
	}
	b.WriteString("\n## Labels\n")
	for _, m := range all {
		for _, label := range m.Labels {
			if len(label.Values) > 0 {
				b.WriteString(values(m, label))
			}
		}
	}
	return b.String()
}

var escape = strings.NewReplacer(`|`, `\|`, `*`, `\*`, `<`, `\<`)

func names(m metrics.Metric) string {
	quoted := make([]string, len(m.Labels))
	for i, label := range m.Labels {
		quoted[i] = "`" + label.Name + "`"
	}
	return strings.Join(quoted, " ")
}

func buckets(m metrics.Metric) string {
	if len(m.Buckets) == 0 {
		return ""
	}
	return fmt.Sprintf(" Buckets from %v to %v.", m.Buckets[0], m.Buckets[len(m.Buckets)-1])
}

func values(m metrics.Metric, label metrics.Label) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n`%s` of `%s`: %s.\n\n| Value | Meaning |\n|---|---|\n", label.Name, m.Name, label.Help)
	for _, value := range label.Values {
		fmt.Fprintf(&b, "| `%s` | %s |\n", value.Name, escape.Replace(value.Help))
	}
	return b.String()
}
