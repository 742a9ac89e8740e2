package envoy_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The listeners are those in testdata/listeners.golden.yaml. Changing them replaces no
// pod.
func TestGoldenListeners(t *testing.T) {
	checkGoldenListeners(t, "testdata/listeners.golden.yaml", envoy.Listeners(envoy.ReadyOptions{Metrics: true, IPv6: true}, routing.Telemetry{}))
}

func checkGoldenListeners(t *testing.T, golden string, listeners []*listenerv3.Listener) {
	t.Helper()
	var documents [][]byte
	for _, l := range listeners {
		documents = append(documents, asYAML(t, l))
	}
	checkGolden(t, golden, bytes.Join(documents, []byte("---\n")))
}

// byRoute and byBackend are the settings for the metrics by route.
var (
	byRoute   = routing.Telemetry{Metrics: &v1alpha1.EnvoyMetrics{By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute}}}
	byBackend = routing.Telemetry{Metrics: &v1alpha1.EnvoyMetrics{RequestsInFlight: ptr.To(true), By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend}}}
)

// Both listeners for requests have the same loggers for the metrics by route, the open one
// in testdata/listeners-metrics.golden.yaml. The listener for probes has none.
func TestGoldenListenersWithMetricsByRoute(t *testing.T) {
	listeners := envoy.Listeners(envoy.ReadyOptions{}, byBackend)
	checkGoldenListeners(t, "testdata/listeners-metrics.golden.yaml", listeners[:1])
	var loggers [][]*accesslogv3.AccessLog
	for _, l := range listeners {
		m := &hcmv3.HttpConnectionManager{}
		if err := l.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		loggers = append(loggers, m.AccessLog)
	}
	if diff := cmp.Diff(loggers[0], loggers[1], protocmp.Transform()); diff != "" || len(loggers[0]) == 0 || len(loggers[2]) != 0 {
		t.Errorf("the loggers of the listeners are %v (-open +protected):\n%s", loggers, diff)
	}
}

// A listener that sends spans is that in testdata/tracing.golden.yaml.
func TestGoldenListenerWithTracing(t *testing.T) {
	telemetry := routing.Telemetry{Tracing: &v1alpha1.Tracing{Endpoint: "http://collector.observability.svc:4317"}}
	checkGolden(t, "testdata/tracing.golden.yaml", asYAML(t, envoy.Listeners(envoy.ReadyOptions{}, telemetry)[0]))
}

// Without permission, the port for the readiness probe does not serve the metrics.
func TestListenersServeMetricsOnlyWithPermission(t *testing.T) {
	for _, serves := range []bool{false, true} {
		var paths []string
		for _, l := range envoy.Listeners(envoy.ReadyOptions{Metrics: serves}, routing.Telemetry{}) {
			for line := range strings.Lines(string(asYAML(t, l))) {
				if path, ok := strings.CutPrefix(strings.TrimSpace(line), "path: "); ok {
					paths = append(paths, path)
				}
			}
		}
		if got := slices.Contains(paths, "/stats/prometheus"); got != serves {
			t.Errorf("the listeners serve %q, want the metrics: %t", paths, serves)
		}
	}
}
