package top

import (
	"fmt"
	"maps"
	"slices"
)

// detail is what an Envoy's metrics distinguish.
type detail int

const (
	gateways detail = iota
	routes
	backends
)

// Options select what a [Measurement] shows.
type Options struct {
	By By
	// Namespace selects the routes in one namespace, unless it is empty.
	Namespace string
}

// Compare returns the requests between two readings. A connector counts only if both
// contain it.
func Compare(before, after Reading, o Options) *Measurement {
	details := map[string]detail{}
	for _, c := range after.connectors {
		details[c.gateway] = max(details[c.gateway], c.scrape.detail())
	}
	by, problems := choose(o.By, details)
	m := measurement{by: by, namespace: o.Namespace, rows: map[key]*sums{}}
	result := &Measurement{By: by, Problems: slices.Concat(after.problems, problems)}
	for uid, c := range after.connectors {
		if c.scrape.at.After(result.Time) {
			result.Time = c.scrape.at
		}
		old, ok := before.connectors[uid]
		if !ok {
			continue // counted from the next reading on
		}
		result.Connectors++
		result.Seconds = max(result.Seconds, c.scrape.at.Sub(old.scrape.at).Seconds())
		if details[c.gateway] >= by.detail() {
			m.add(c.gateway, old.scrape, c.scrape)
		}
	}
	result.Rows = m.sorted()
	for _, row := range result.Rows {
		result.RequestsPerSecond += row.RequestsPerSecond
	}
	return result
}

// detail returns what the metrics distinguish.
func (s scrape) detail() detail {
	d := gateways
	for _, c := range s.routes.requests {
		if _, ok := c.labels[labelBackend]; ok {
			return backends
		}
		d = routes
	}
	return d
}

// detail returns what the metrics must distinguish.
func (b By) detail() detail {
	switch b {
	case ByGateway:
		return gateways
	case ByBackend:
		return backends
	case ByRoute, ByHostname, ByNamespace:
	}
	return routes
}

// choose returns what to count by: what the user wants or, if no Gateway has metrics for it,
// the most detailed alternative. It also returns the reasons for missing rows.
func choose(wanted By, details map[string]detail) (By, []string) {
	best := gateways
	for _, d := range details {
		best = max(best, d)
	}
	by := wanted
	if best < wanted.detail() {
		by = []By{ByGateway, ByRoute, ByBackend}[best]
	}
	setting := "[Route]"
	if wanted.detail() == backends {
		setting = "[Route, Backend]"
	}
	var problems []string
	for _, gateway := range slices.Sorted(maps.Keys(details)) {
		if details[gateway] < wanted.detail() {
			problems = append(problems, fmt.Sprintf("Gateway %s has no metrics by %s. Unless it had no requests, set connector.envoy.metrics.by to %s "+
				"and allowWorkInProgress to true in the TunnelConfiguration of its GatewayClass.", gateway, wanted, setting))
		}
	}
	return by, problems
}
