package main

import (
	"fmt"
	"io"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// goal is a limit for a value from one bed. The goals are for two cores, the real connector
// and a quiet machine.
type goal struct {
	name string
	// hostnames selects the result.
	hostnames int
	value     func(c *comparison, r *result) float64
	limit     float64
	atLeast   bool // otherwise, the limit is the largest permitted value
	format    string
}

// goals returns the goals for the data plane Envoy.
func goals() []goal {
	served := func(_ *comparison, r *result) float64 { return r.backend.served.median() }
	all := []goal{
		{name: "requests per second, compared with ingress rules", hostnames: 10, limit: 0.75, atLeast: true, format: "%.2f",
			value: func(_ *comparison, r *result) float64 { return r.toRules.median() }},
		{name: "requests per second, compared with 10 hostnames", hostnames: 10_000, limit: 0.9, atLeast: true, format: "%.2f",
			value: func(_ *comparison, r *result) float64 { return r.toEnvoy.median() }},
		{name: "start", hostnames: 50_000, limit: 5, format: "%.1f s", value: func(_ *comparison, r *result) float64 { return r.start }},
	}
	for _, size := range []struct {
		hostnames                 int
		served, envoy, controller float64
	}{{10, 20, 0, 0}, {1000, 30, 0, 0}, {10_000, 60, 300, 250}, {50_000, 150, 700, 600}} {
		all = append(all, goal{name: "change to served", hostnames: size.hostnames, limit: size.served, format: "%.0f ms", value: served},
			goal{name: "p99 of other requests during changes, compared with the p99 without", hostnames: size.hostnames, limit: 2.5, format: "%.1f",
				value: func(_ *comparison, r *result) float64 { return r.meanwhile.over(r.p99).median() }})
		if size.envoy > 0 {
			all = append(all,
				goal{name: "memory of Envoy after requests to every Service", hostnames: size.hostnames, limit: size.envoy, format: "%.0f MiB",
					value: func(_ *comparison, r *result) float64 { return r.after.Envoy }},
				goal{name: "memory of the controller", hostnames: size.hostnames, limit: size.controller, format: "%.0f MiB",
					value: func(_ *comparison, r *result) float64 { return r.after.Controller }})
		}
	}
	return all
}

// maxCostRatio is the goal for the CPU time of a change with the last number of routes,
// compared with the first.
const maxCostRatio = 2

// printGoals prints each goal whose value was measured.
func printGoals(w io.Writer, c *comparison) {
	fmt.Fprint(w, "\n| Goal for Envoy | Hostnames | Limit | Measured | Met |\n|---|---|---|---|---|\n")
	for _, g := range goals() {
		for i := range c.results {
			if r := &c.results[i]; r.DataPlane == v1alpha1.DataPlaneEnvoy && r.Hostnames == g.hostnames {
				g.print(w, g.value(c, r))
			}
		}
	}
}

func (g goal) print(w io.Writer, value float64) {
	bound, isMet := "at most ", value <= g.limit
	if g.atLeast {
		bound, isMet = "at least ", value >= g.limit
	}
	met := map[bool]string{true: "yes", false: "**no**"}[isMet]
	if value == 0 {
		met = "not measured"
	}
	fmt.Fprintf(w, "| %s | %d | %s"+g.format+" | "+g.format+" | %s |\n", g.name, g.hostnames, bound, g.limit, value, met)
}
