package xds_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// counted returns a metric that the Envoy serves to Prometheus.
func (s *sidecar) counted(t *testing.T, name string) int {
	t.Helper()
	value, ok := s.series(t, name)["{}"]
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return int(value)
}

const (
	metricLogged  = "envoy_access_log_process_ratelimit_allowed"
	metricDropped = "envoy_access_log_process_ratelimit_denied"
)

// Both listeners share the limit, and a metric counts every line that was dropped.
// Requests that are not to be logged do not count. Another limit takes effect without a
// change to the listeners.
func TestAccessLogLimit(t *testing.T) {
	const requests = 60
	one, none := int32(1), int32(0)
	s, table := loggingSidecar(t, v1alpha1.AccessLog{MaxLinesPerSecond: &one, SamplingPercent: &none}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/app/500" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	for range requests / 2 {
		for _, listener := range []string{s.open, s.protected} {
			get(t, listener, "/app", "192.0.2.7")
			get(t, listener, "/app/500", "192.0.2.7")
		}
	}
	written, dropped := s.counted(t, metricLogged), s.counted(t, metricDropped)
	if written+dropped != requests || written == 0 || dropped == 0 {
		t.Errorf("%d lines and %d dropped ones, want %d in total", written, dropped, requests)
	}
	s.awaitLines(t, written)

	many := int32(100_000)
	s.publish(t, logged(2, table, v1alpha1.AccessLog{MaxLinesPerSecond: &many, SamplingPercent: &none}))
	s.awaitAcknowledged(t, 2)
	await(t, "ten requests without a dropped line", func() bool {
		dropped := s.counted(t, metricDropped)
		for range 10 {
			get(t, s.open, "/app/500", "192.0.2.7")
		}
		return s.counted(t, metricDropped) == dropped
	})
	s.metrics.change(func() {
		if n := s.metrics.pushes[metrics.XDSListeners]; n != 3 {
			t.Errorf("%d listeners were sent, want 3", n)
		}
	})
}

// A running Envoy gets the access log, loses it, gets another limit and connects to another
// leader, while requests arrive. It never fails. The second Envoy ends its previous listeners
// at once, so that it subscribes to the limit again each time.
func TestAccessLogChangesWithoutAFailure(t *testing.T) {
	for name, arguments := range map[string][]string{"listeners that drain": nil, "listeners that end": {"--drain-time-s", "1", "--drain-strategy", "immediate"}} {
		t.Run(name, func(t *testing.T) {
			s := newSidecarWith(t, envoy.Bootstrap("127.0.0.1"), arguments...)
			blue, _ := backend(t, "blue")
			table := tableFor(blue)
			s.publish(t, publicationWithLog(1, table, nil))
			s.awaitAnswer(t, "200 blue")
			failed := s.load(t)
			s.changeAccessLog(t, table)
			failed()
		})
	}
}

// changeAccessLog changes the settings several times. Each change takes effect.
func (s *sidecar) changeAccessLog(t *testing.T, table *routing.Table) {
	t.Helper()
	yes := true
	settings := func(lines int32, query *bool) *v1alpha1.AccessLog {
		return &v1alpha1.AccessLog{MaxLinesPerSecond: &lines, Query: query}
	}
	for i, a := range []*v1alpha1.AccessLog{
		settings(100_000, nil), nil, settings(100_000, nil), settings(90_000, nil), settings(90_000, &yes), settings(80_000, &yes), nil, settings(70_000, nil), nil,
	} {
		if i%3 == 2 {
			s.stop()
			s.startServer(t)
		}
		sequence := int64(i + 2)
		p := publicationWithLog(sequence, table, a)
		s.publish(t, p)
		s.awaitAcknowledged(t, sequence)
		s.awaitEffect(t, i, a != nil)
	}
}

// awaitEffect sends requests until some of the last five are logged, or none of them is.
func (s *sidecar) awaitEffect(t *testing.T, change int, isLogged bool) {
	t.Helper()
	const last = 5
	sent := 0
	await(t, fmt.Sprintf("effect of change %d", change), func() bool {
		get(t, s.protected, fmt.Sprintf("/app/%d/%d", change, sent), "192.0.2.7")
		sent++
		found := 0
		for _, l := range s.lines(t) {
			number := 0
			if _, err := fmt.Sscanf(fmt.Sprint(l["path"]), fmt.Sprintf("/app/%d/%%d", change), &number); err == nil && number >= sent-last {
				found++
			}
		}
		return sent >= last && (isLogged && found >= 1 || !isLogged && found == 0)
	})
}
