package main

import (
	"fmt"
	"io"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// printTable prints the results as a table in Markdown.
func printTable(w io.Writer, results []result) {
	connector := "stand-in for cloudflared"
	if len(results) > 0 && results[0].cloudflared != "" {
		connector = "cloudflared"
	}
	fmt.Fprintf(w, "| Data plane | Hostnames | Requests per second | Latency: median, p99 | Change to served: median, maximum | p99 of other requests meanwhile | Memory: %s, Envoy, controller |\n", connector)
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, r := range results {
		envoy := "–"
		if r.dataPlane == v1alpha1.DataPlaneEnvoy {
			envoy = fmt.Sprintf("%.0f to %.0f MiB", r.envoyBefore, r.envoyMemory)
		}
		fmt.Fprintf(w, "| %s | %d | %.0f | %s, %s | %s, %s | %s | %s, %s, %s |\n", r.dataPlane, r.hostnames, r.requests,
			milliseconds(r.median), milliseconds(r.p99), milliseconds(r.change[len(r.change)/2]), milliseconds(r.change[len(r.change)-1]),
			milliseconds(r.meanwhile), mebibytes(r.connector), envoy, mebibytes(r.controller))
	}
}

func milliseconds(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

func mebibytes(m float64) string { return fmt.Sprintf("%.0f MiB", m) }
