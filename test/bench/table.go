package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// printResults prints all results as tables in Markdown. A value is a median, followed by the
// smallest and the largest value.
func printResults(w io.Writer, c *comparison) {
	connector := "the stand-in for cloudflared"
	if c.cloudflared != "" {
		connector = "cloudflared"
	}
	fmt.Fprintf(w, "\nThe connector is %s. Each value is a median, followed by the smallest and the largest value.\n", connector)
	if len(c.results) > 0 {
		printRequests(w, c.results)
		printChanges(w, c.results)
		printMemory(w, c.results)
		printGoals(w, c)
	}
	if len(c.cost) > 0 {
		printCosts(w, c.cost)
	}
}

// printHead prints the first rows of a table.
func printHead(w io.Writer, columns ...string) {
	fmt.Fprintf(w, "\n| Data plane | %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)+1))
}

func printRequests(w io.Writer, results []result) {
	printHead(w, "Hostnames", "Requests per second", "Compared with the first ingress rules", "Compared with the first Envoy",
		"CPU per request, µs: connector", "Envoy", "visitors, edge and backends", "Latency, ms: median", "p99")
	for _, r := range results {
		fmt.Fprintf(w, "| `%s` | %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", r.DataPlane, r.Hostnames, r.requests.with("%.0f"),
			r.toRules.with("%.2f"), r.toEnvoy.with("%.2f"), r.connectorCPU.with("%.0f"), r.onlyEnvoy(r.envoyCPU).with("%.0f"),
			r.otherCPU.with("%.0f"), r.median.with("%.1f"), r.p99.with("%.1f"))
	}
}

func printChanges(w io.Writer, results []result) {
	printHead(w, "Hostnames", "One change to served, ms", "p99 of other requests during changes, ms", "Compared with p99 without",
		"Controller's CPU for one change, ms", "New hostname to served, ms", "Controller's CPU for it, ms", "Start, s")
	for _, r := range results {
		fmt.Fprintf(w, "| `%s` | %d | %s | %s | %s | %s | %s | %s | %.1f |\n", r.DataPlane, r.Hostnames, r.backend.served.with("%.0f"),
			r.meanwhile.with("%.1f"), r.meanwhile.over(r.p99).with("%.1f"), r.backend.cpu.with("%.0f"), r.hostname.served.with("%.0f"),
			r.hostname.cpu.with("%.0f"), r.start)
	}
}

func printMemory(w io.Writer, results []result) {
	printHead(w, "Hostnames", "Memory, MiB: connector", "Envoy before requests", "Envoy after requests to every Service and changes", "Controller")
	for _, r := range results {
		fmt.Fprintf(w, "| `%s` | %d | %.0f | %s | %s | %.0f |\n", r.DataPlane, r.Hostnames, r.after.Connector,
			r.onlyEnvoy(series{r.before.Envoy}).with("%.0f"), r.onlyEnvoy(series{r.after.Envoy}).with("%.0f"), r.after.Controller)
	}
}

// onlyEnvoy returns the values, or none for ingress rules.
func (r *result) onlyEnvoy(values series) series {
	if r.DataPlane != v1alpha1.DataPlaneEnvoy {
		return nil
	}
	return values
}

// printCosts prints the CPU time of one change for each number of routes.
func printCosts(w io.Writer, cost []result) {
	printHead(w, "Routes", "Controller's CPU for one change, ms", "Compared with the first", fmt.Sprintf("At most %d", maxCostRatio),
		"Controller's CPU for a new hostname, ms", "Compared with the first new hostname")
	first := map[v1alpha1.DataPlane]*result{}
	for i := range cost {
		r := &cost[i]
		if first[r.DataPlane] == nil {
			first[r.DataPlane] = r
		}
		changed, added := r.backend.cpu.median(), r.hostname.cpu.median()
		ratio := changed / first[r.DataPlane].backend.cpu.median()
		fmt.Fprintf(w, "| `%s` | %d | %s | %.1f | %s | %s | %.1f |\n", r.DataPlane, r.routes(), r.backend.cpu.with("%.0f"), ratio,
			map[bool]string{true: "yes", false: "**no**"}[ratio <= maxCostRatio], r.hostname.cpu.with("%.0f"),
			added/first[r.DataPlane].hostname.cpu.median())
	}
}
