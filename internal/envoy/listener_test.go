package envoy_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The listeners are those in testdata/listeners.golden.yaml. Changing them replaces no
// pod.
func TestGoldenListeners(t *testing.T) {
	var documents [][]byte
	for _, l := range envoy.Listeners(envoy.ReadyOptions{Metrics: true, IPv6: true}, routing.Telemetry{}) {
		documents = append(documents, asYAML(t, l))
	}
	checkGolden(t, "testdata/listeners.golden.yaml", bytes.Join(documents, []byte("---\n")))
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
