package xds_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// countedBy returns the settings for metrics.
func countedBy(maxPairs int32, by ...v1alpha1.MetricsDimension) routing.Telemetry {
	return routing.Telemetry{Metrics: &v1alpha1.EnvoyMetrics{By: by, MaxPairs: &maxPairs, RequestsInFlight: ptr.To(true), AllowWorkInProgress: ptr.To(true)}}
}

// countedTable returns a table with one route and one hostname for each number, all of
// which are counted.
func countedTable(telemetry routing.Telemetry, b routing.Backend, first, n int) *routing.Table {
	t := &routing.Table{ClusterDomain: "cluster.local", Telemetry: telemetry, Groups: make([]routing.Group, n)}
	for i := range t.Groups {
		t.Groups[i] = tableFor(b).Groups[0]
		t.Groups[i].Hostname = numberedHostname(first + i)
		e := t.Groups[i].Entries[0]
		e.Hostname, e.RouteHostname, e.Counted = t.Groups[i].Hostname, t.Groups[i].Hostname, true
		e.Source.Route.NamespacedName = types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("route-%d", first+i)}
	}
	return t
}

func numberedHostname(i int) string { return fmt.Sprintf("host-%d.example.com", i) }

func publicationOf(sequence int64, t *routing.Table) xds.Publication {
	return xds.Publication{
		Gateway: shared, Tunnel: sharedTunnel, Sequence: sequence, Resources: envoy.Render(t), Assignments: envoy.Assignments{},
		Listeners: envoy.Listeners(envoy.ReadyOptions{Metrics: true}, t.Telemetry),
	}
}

// publishAndAwait publishes the table, and waits until Envoy has it.
func (s *sidecar) publishAndAwait(t *testing.T, sequence int64, table *routing.Table) {
	t.Helper()
	s.publish(t, publicationOf(sequence, table))
	s.awaitAcknowledged(t, sequence)
}

// routeSeries returns the values of the metrics by route, by name with labels.
func (s *sidecar) routeSeries(t *testing.T) map[string]float64 {
	t.Helper()
	return s.series(t, "envoy_tunnel_gateway_")
}

// series returns the values of the metrics with the prefix, by the rest of the name with labels.
func (s *sidecar) series(t *testing.T, prefix string) map[string]float64 {
	t.Helper()
	response, err := http.Get("http://" + s.ready + "/stats/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(line, prefix)
		if !ok {
			continue
		}
		space := strings.LastIndex(name, " ")
		if values[name[:space]], err = strconv.ParseFloat(strings.TrimSpace(name[space:]), 64); err != nil {
			t.Fatal(err)
		}
	}
	return values
}

// visitEach sends a request to each hostname, on one connection.
func (s *sidecar) visitEach(t *testing.T, first, n int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for i := range n {
		request, err := http.NewRequest(http.MethodGet, "http://"+s.open+"/app", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = numberedHostname(first + i)
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d", request.Host, response.StatusCode)
		}
	}
}

// withEviction returns a bootstrap in which Envoy forgets unused statistics sooner.
func withEviction(interval time.Duration) *bootstrapv3.Bootstrap {
	b := envoy.Bootstrap("127.0.0.1")
	b.StatsFlushInterval = durationpb.New(interval)
	b.StatsEviction = &bootstrapv3.Bootstrap_StatsEvictionInterval{StatsEvictionInterval: durationpb.New(interval)}
	return b
}

// While the settings for metrics change, no request fails, Envoy rejects nothing and keeps its
// stream.
func TestMetricsByRouteBeginAndEndWithoutAFailedRequest(t *testing.T) {
	s := newSidecar(t)
	blue, _ := backend(t, "blue")
	table := func(telemetry routing.Telemetry) *routing.Table {
		t := tableFor(blue)
		t.Telemetry, t.Groups[0].Entries[0].Counted = telemetry, telemetry.CountsRoutes()
		return t
	}
	s.publishAndAwait(t, 1, table(routing.Telemetry{}))
	s.awaitAnswer(t, "200 blue")
	failed := s.load(t)
	byRoute, byBackend := countedBy(10, v1alpha1.MetricsByRoute), countedBy(20, v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend)
	const labels = `route_kind="HTTPRoute",route_namespace="team",route_name="app",rule="0",hostname="app.example.com"`
	for i, test := range []struct {
		telemetry routing.Telemetry
		labels    string
	}{{byRoute, labels}, {byBackend, labels + fmt.Sprintf(`,backend="team/blue:%d"`, blue.ServicePort)}, {routing.Telemetry{}, ""}, {byRoute, labels}, {routing.Telemetry{}, ""}} {
		sequence := int64(i + 2)
		s.publishAndAwait(t, sequence, table(test.telemetry))
		name := "requests_total{" + test.labels + `,code="2xx",flags="-"}`
		before := s.routeSeries(t)[name]
		switch {
		case i == 0:
			took := await(t, "request that is counted", func() bool { return s.routeSeries(t)[name] > before })
			t.Logf("requests of a busy client, whose connection Envoy closes, count %s after the acknowledgement", took)
		case test.labels != "":
			await(t, "request that is counted", func() bool {
				s.via(t) // on a new connection
				return s.routeSeries(t)[name] > before
			})
		}
	}
	failed()
	after := s.routeSeries(t)
	s.via(t)
	s.via(t)
	if diff := cmp.Diff(after, s.routeSeries(t)); diff != "" {
		t.Errorf("requests on new connections are still counted (-before +after):\n%s", diff)
	}
	s.metrics.change(func() {
		if len(s.metrics.rejections) != 0 {
			t.Errorf("Envoy rejected %v", s.metrics.rejections)
		}
	})
	if n := s.metrics.streams(); n != 1 {
		t.Errorf("Envoy opened %d streams, want 1", n)
	}
}

// Envoy forgets the series of routes that are gone, so that their number stays bounded while
// routes come and go.
func TestSeriesOfRoutesThatAreGoneAreForgotten(t *testing.T) {
	const routes, batch = 5000, 250
	s := newSidecarWith(t, withEviction(time.Second))
	blue, _ := backend(t, "blue")
	telemetry := countedBy(batch, v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend)
	most, sequence := 0, int64(0)
	for first := 0; first < routes; first += batch {
		sequence++
		s.publishAndAwait(t, sequence, countedTable(telemetry, blue, first, batch))
		s.visitEach(t, first, batch)
		most = max(most, len(s.routeSeries(t)))
	}
	last := `hostname="` + numberedHostname(routes-1) + `"`
	await(t, "end of the series of routes that are gone", func() bool {
		s.visitEach(t, routes-1, 1)
		left := 0
		for name := range s.routeSeries(t) {
			if !strings.Contains(name, last) {
				left++
			}
		}
		return left == 0
	})
	// A refused gauge could count the end of a request without its start.
	if n := s.series(t, "envoy_server_stats_overflow_")["gauge{}"]; n != 0 {
		t.Errorf("Envoy refused %v gauges", n)
	}
	// Before Envoy forgets series, its limits apply: a histogram has 10 series.
	t.Logf("at most %d series for %d routes at a time, of %d", most, batch, routes)
	if limit := batch * (64 + 16*10 + 64); most > limit {
		t.Errorf("Envoy had %d series, want at most %d", most, limit)
	}
	if got := len(s.routeSeries(t)); got < 20 || got > 30 {
		t.Errorf("a route with one kind of requests has %d series, want about 25", got)
	}
	s.metrics.change(func() {
		if len(s.metrics.rejections) != 0 {
			t.Errorf("Envoy rejected %v", s.metrics.rejections)
		}
	})
}

// A backend can respond with so many combinations of statuses that Envoy refuses further series,
// also those of other tenants. It still serves their requests, and counts what it refused.
func TestEnvoyReportsSeriesAboveItsLimits(t *testing.T) {
	s := newSidecar(t)
	blue, _ := backendWith(t, "blue", func(w http.ResponseWriter, r *http.Request) {
		if grpcStatus := r.Header.Get("Wanted-Grpc-Status"); grpcStatus != "" {
			w.Header().Set("Grpc-Status", grpcStatus)
		}
		if status, err := strconv.Atoi(r.Header.Get("Wanted-Status")); err == nil {
			w.WriteHeader(status)
		}
	})
	s.publishAndAwait(t, 1, countedTable(countedBy(1, v1alpha1.MetricsByRoute), blue, 0, 2))
	refused := func() float64 { return s.series(t, "envoy_server_stats_overflow_")["counter{}"] }
	s.visitEach(t, 0, 1)
	if n := refused(); n != 0 {
		t.Fatalf("Envoy refused %v series within its limits", n)
	}
	for grpcStatus := range 17 {
		for status := 200; status <= 600; status += 100 {
			raw(t, s.open, fmt.Sprintf("GET /app HTTP/1.1\r\nHost: %s\r\nWanted-Grpc-Status: %d\r\nWanted-Status: %d\r\n\r\n", numberedHostname(0), grpcStatus, status))
		}
	}
	s.visitEach(t, 1, 1)
	await(t, "series that Envoy refused", func() bool { return refused() > 0 })
	for name := range s.routeSeries(t) {
		if strings.HasPrefix(name, "requests_total{") && strings.Contains(name, numberedHostname(1)) {
			t.Errorf("Envoy has %s above its limit", name)
		}
	}
}

// A request that takes longer than Envoy keeps unused statistics still ends with the number of
// requests in flight that there are.
func TestLongRequestsInFlightAreCountedOnce(t *testing.T) {
	s := newSidecarWith(t, withEviction(200*time.Millisecond))
	released := make(chan struct{})
	slow, _ := backendWith(t, "slow", func(http.ResponseWriter, *http.Request) { <-released })
	s.publishAndAwait(t, 1, countedTable(countedBy(10, v1alpha1.MetricsByRoute), slow, 0, 1))
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.visitEach(t, 0, 1)
	}()
	name := fmt.Sprintf(`requests_in_flight{route_kind="HTTPRoute",route_namespace="team",route_name="route-0",rule="0",hostname="%s"}`, numberedHostname(0))
	await(t, "request in flight", func() bool { return s.routeSeries(t)[name] == 1 })
	time.Sleep(2 * time.Second) //nolint:forbidigo // ten times as long as statistics are kept
	t.Logf("after 2 s: %v", s.routeSeries(t)[name])
	close(released)
	<-done
	for range 10 {
		if got := s.routeSeries(t)[name]; got < 0 || got > 1 {
			t.Fatalf("%v requests are in flight", got)
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // polls Envoy
	}
}
