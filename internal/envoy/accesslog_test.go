package envoy_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The listeners with an access log are those in testdata/access-log.golden.yaml.
func TestGoldenListenersWithAnAccessLog(t *testing.T) {
	percent, address, sampled, yes := int32(1), v1alpha1.VisitorAddressPrefix, v1alpha1.LoggedErrorsSampled, true
	var documents [][]byte
	for _, a := range []v1alpha1.AccessLog{{}, {SamplingPercent: &percent, VisitorAddress: &address, Errors: &sampled, Query: &yes}} {
		for _, l := range envoy.Listeners(envoy.ReadyOptions{}, routing.Telemetry{AccessLog: &a})[:1] {
			documents = append(documents, asYAML(t, l))
		}
	}
	checkGolden(t, "testdata/access-log.golden.yaml", bytes.Join(documents, []byte("---\n")))
}

// Both listeners for requests log. The listener for probes does not.
func TestListenersForRequestsLog(t *testing.T) {
	for _, l := range envoy.Listeners(envoy.ReadyOptions{}, routing.Telemetry{AccessLog: &v1alpha1.AccessLog{}}) {
		if got, want := strings.Contains(string(asYAML(t, l)), "StdoutAccessLog"), l.Name != envoy.ListenerReady; got != want {
			t.Errorf("listener %s logs: %t, want %t", l.Name, got, want)
		}
	}
}

// An Envoy without a controller gets no limit, because it takes limits only by xDS.
func TestStaticAccessLogHasNoLimit(t *testing.T) {
	r := envoy.Render(&routing.Table{Telemetry: routing.Telemetry{AccessLog: &v1alpha1.AccessLog{}}})
	for _, l := range envoy.Static(r, nil).StaticResources.Listeners {
		if text := string(asYAML(t, l)); !strings.Contains(text, "StdoutAccessLog") || strings.Contains(text, "RateLimit") {
			t.Errorf("listener %s:\n%s", l.Name, text)
		}
	}
}

// The limit has the default while nothing is logged.
func TestAccessLogLimit(t *testing.T) {
	lines := int32(7)
	for want, a := range map[uint32]*v1alpha1.AccessLog{100: nil, 7: {MaxLinesPerSecond: &lines}} {
		got := envoy.AccessLogLimit(routing.Telemetry{AccessLog: a})
		if got.MaxTokens != want || got.TokensPerFill.GetValue() != want {
			t.Errorf("got %v, want %d lines", got, want)
		}
	}
}
