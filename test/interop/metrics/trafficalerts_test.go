package metrics

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// withThreshold returns the alert with another threshold, as the chart renders it.
func withThreshold(t *testing.T, rule rulefmt.Rule, threshold string) rulefmt.Rule {
	t.Helper()
	expression := regexp.MustCompile(`[0-9]+ # threshold`).ReplaceAllLiteralString(rule.Expr, threshold)
	if expression == rule.Expr {
		t.Fatalf("alert %s has no threshold", rule.Alert)
	}
	rule.Expr = expression
	return rule
}

// TestTrafficAlertsFire checks which routes and backends the alerts name after requests
// to a real Envoy fail, and that the alerts end when only other requests are sent.
func TestTrafficAlertsFire(t *testing.T) {
	all := trafficAlerts(t)
	const refused = "TunnelGatewaySeriesRefused"
	const noBackend, errors, slow, dropped = "TunnelGatewayNoHealthyBackend", "TunnelGatewayRouteErrors", "TunnelGatewayRouteSlow", "TunnelGatewayLogLinesDropped"
	all["30 % errors"] = withThreshold(t, all[errors], "30")
	all["25 ms"] = withThreshold(t, all[slow], "25")
	all[slow] = withThreshold(t, all[slow], "9999")
	s := startTraffic(t, v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend)
	s.refuses = true
	s.run(16)
	s.wantFiring("requests fail", all, map[string][]string{
		// A fifth of the requests to blog/web exceed the circuit breaker.
		errors:        {"GRPCRoute blog calls", "HTTPRoute blog web", "HTTPRoute shop failures"},
		"30 % errors": {"GRPCRoute blog calls", "HTTPRoute shop failures"},
		dropped:       {""},
		refused:       {""},
		noBackend:     {"HTTPRoute shop failures shop/without-pods:80"},
		"25 ms":       {"HTTPRoute shop web"},
	})
	s.visits = slices.DeleteFunc(s.visits, func(v visit) bool { return v.fails() || v.slow() })
	s.refuses = false
	s.run(21) // the window, and the time for which the alert fires
	s.wantFiring("no request fails", all, map[string][]string{dropped: {""}})
}

// wantFiring compares the firing alerts, by the routes and backends that they name. A
// busy machine can make any request take longer than 25 ms.
func (s *traffic) wantFiring(situation string, all map[string]rulefmt.Rule, want map[string][]string) {
	t := s.envoyBed.t
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		var got []string
		if s.fires(all[name]) {
			for _, sample := range s.query(all[name].Expr) {
				key := resultKey(sample.Metric)
				rest, ok := strings.CutPrefix(key, "platform shared")
				if !ok {
					t.Errorf("%s: %s does not name the Gateway: %v", situation, name, sample.Metric)
				}
				got = append(got, strings.TrimSpace(rest))
			}
		}
		slices.Sort(got)
		if name == "25 ms" {
			got = slices.DeleteFunc(got, func(key string) bool { return !slices.Contains(want[name], key) })
		}
		if !slices.Equal(got, want[name]) {
			t.Errorf("%s: %s names %q, want %q", situation, name, got, want[name])
		}
	}
}
