package top

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

func example() *Measurement {
	return &Measurement{
		Time: time.Date(2026, 1, 1, 12, 30, 0, 0, time.UTC), Seconds: 5, By: ByRoute, Connectors: 2, RequestsPerSecond: 135.75,
		Rows: []Row{
			{Gateway: "infra/shared", Name: "HTTPRoute shop/web", RequestsPerSecond: 120.5, ErrorRatio: new(0.0123), P50: &Quantile{Milliseconds: 12.4}, P99: &Quantile{Milliseconds: 10000, Above: true}},
			{Gateway: "infra/shared", Name: "GRPCRoute shop/api", RequestsPerSecond: 15.25, ErrorRatio: new(0.0), P50: &Quantile{Milliseconds: 2.5}, P99: &Quantile{Milliseconds: 1250}},
			{Gateway: "infra/shared", Name: Other, RequestsPerSecond: 0},
		},
	}
}

func TestTable(t *testing.T) {
	twoGateways := example()
	twoGateways.Rows[1].Gateway = "infra/other"
	twoGateways.Rows[1].ErrorRatio = new(0.0004)
	byGateway := example()
	byGateway.By, byGateway.Rows, byGateway.Connectors = ByGateway, byGateway.Rows[:1], 1
	byGateway.Problems = []string{"Gateway infra/shared has no metrics by route."}
	limited := example()
	limited.Limit(1)
	const header = "12:30:00  2 connectors, 135.8 requests/s in the last 5 s\n"
	for name, test := range map[string]struct {
		measurement *Measurement
		want        string
	}{
		"one Gateway": {example(), header +
			"ROUTE               REQUESTS/S  ERRORS  P50    P99\n" +
			"HTTPRoute shop/web  120.5       1.2%    12ms   >10.0s\n" +
			"GRPCRoute shop/api  15.2        0.0%    2.5ms  1.2s\n" +
			"(other)             0.0         -       -      -\n"},
		"two Gateways": {twoGateways, header +
			"ROUTE               GATEWAY       REQUESTS/S  ERRORS  P50    P99\n" +
			"HTTPRoute shop/web  infra/shared  120.5       1.2%    12ms   >10.0s\n" +
			"GRPCRoute shop/api  infra/other   15.2        <0.1%   2.5ms  1.2s\n" +
			"(other)             infra/shared  0.0         -       -      -\n"},
		"totals": {byGateway, strings.Replace(header, "2 connectors", "1 connector", 1) +
			"Gateway infra/shared has no metrics by route.\n" +
			"GATEWAY       REQUESTS/S  ERRORS  P50   P99\n" +
			"infra/shared  120.5       1.2%    12ms  >10.0s\n"},
		"a limit": {limited, header +
			"ROUTE               REQUESTS/S  ERRORS  P50   P99\n" +
			"HTTPRoute shop/web  120.5       1.2%    12ms  >10.0s\n" +
			"2 more\n"},
		"no rows": {&Measurement{Time: example().Time, Seconds: 5, By: ByRoute, Connectors: 2}, strings.Replace(header, "135.8", "0.0", 1) +
			"ROUTE  REQUESTS/S  ERRORS  P50  P99\nno requests yet\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := test.measurement.WriteTable(&got, false, 0); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.String()); diff != "" {
				t.Errorf("the table differs (-want +got):\n%s", diff)
			}
			if lines := strings.Count(got.String(), "\n"); lines > len(test.measurement.Rows)+test.measurement.Lines() {
				t.Errorf("the table has %d lines, more than Lines reports", lines)
			}
		})
	}
}

func TestTableColorsRowsWithErrors(t *testing.T) {
	var got bytes.Buffer
	if err := example().WriteTable(&got, true, 0); err != nil {
		t.Fatal(err)
	}
	if red := terminal.Red + "HTTPRoute shop/web"; !strings.Contains(got.String(), red) || strings.Count(got.String(), terminal.Red) != 1 {
		t.Errorf("the table is %q, want one red row", got.String())
	}
}

func TestLabelsCannotControlTheTerminal(t *testing.T) {
	const hostile = "a\x1b[2J\u009b1A\u202e\r\nforged\t\x01\x02b"
	m := example()
	m.Rows[0].Name, m.Rows[1].Gateway, m.Problems = hostile, hostile, []string{hostile}
	var got bytes.Buffer
	if err := m.WriteTable(&got, false, 0); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexAny(got.String(), "\x1b\u009b\u202e\r\t\x01\x02"); i >= 0 {
		t.Errorf("unescaped character at %d: %q", i, got.String())
	}
	for line := range strings.Lines(got.String()) {
		if strings.HasPrefix(line, "forged") {
			t.Errorf("a label forged the line %q", line)
		}
	}
}

func TestGatewaysWithoutMetricsByRouteAreNamed(t *testing.T) {
	const advice = " Unless it had no requests, set connector.envoy.metrics.by to [Route] and allowWorkInProgress to true in the TunnelConfiguration of its GatewayClass."
	for name, test := range map[string]struct {
		wanted   By
		details  map[string]detail
		want     By
		problems []string
	}{
		"all have them":           {ByRoute, map[string]detail{"a/a": routes, "b/b": backends}, ByRoute, nil},
		"one has none":            {ByHostname, map[string]detail{"a/a": gateways, "b/b": routes}, ByHostname, []string{"Gateway a/a has no metrics by hostname." + advice}},
		"none has them":           {ByNamespace, map[string]detail{"a/a": gateways}, ByGateway, []string{"Gateway a/a has no metrics by namespace." + advice}},
		"routes without backends": {ByBackend, map[string]detail{"a/a": routes}, ByRoute, []string{"Gateway a/a has no metrics by backend." + strings.Replace(advice, "[Route]", "[Route, Backend]", 1)}},
		"the Gateways are enough": {ByGateway, map[string]detail{"a/a": gateways}, ByGateway, nil},
		"backends include routes": {ByRoute, map[string]detail{"a/a": backends}, ByRoute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			by, problems := choose(test.wanted, test.details)
			if by != test.want {
				t.Errorf("by = %s, want %s", by, test.want)
			}
			if diff := cmp.Diff(test.problems, problems); diff != "" {
				t.Errorf("problems differ (-want +got):\n%s", diff)
			}
		})
	}
}
