package envoy

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// reported is an Envoy with settings for what it reports.
type reported struct {
	*bed
	name string
	cpu  []float64 // microseconds for each request, by round
}

// Requests in a round.
const (
	benchClients  = 4
	benchRequests = 1500 // by each client
)

// BenchmarkTelemetry measures Envoy's CPU time for a request with different settings, side
// by side: each round sends the same requests to every Envoy. The result is the median of
// all rounds.
func BenchmarkTelemetry(b *testing.B) {
	path, err := binaries.Envoy(b.Context(), b.Output())
	if err != nil {
		b.Fatal(err)
	}
	all := reportedSettings(startCollector(b))
	for i := range all {
		all[i].start(b, path)
	}
	for round := 0; b.Loop(); round++ {
		for i := range all {
			all[(round+i)%len(all)].measure(b)
		}
	}
	for i := range all {
		slices.Sort(all[i].cpu)
		b.ReportMetric(all[i].cpu[len(all[i].cpu)/2], all[i].name+"-µs/request")
	}
}

// reportedSettings returns the settings to compare.
func reportedSettings(collector string) []*reported {
	byBackend := v1alpha1.EnvoyMetrics{By: []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend}}
	inFlight := byBackend
	inFlight.RequestsInFlight = ptr.To(true)
	traces := func(percent int32) *v1alpha1.Tracing {
		return &v1alpha1.Tracing{Endpoint: "http://" + collector, SamplingPercent: &percent}
	}
	var all []*reported
	for _, s := range []struct {
		name string
		routing.Telemetry
	}{
		{"off", routing.Telemetry{}},
		{"metrics", routing.Telemetry{Metrics: &byBackend}},
		{"metrics-in-flight", routing.Telemetry{Metrics: &inFlight}},
		{"log-1%", routing.Telemetry{AccessLog: &v1alpha1.AccessLog{SamplingPercent: ptr.To[int32](1)}}},
		{"log-100%", routing.Telemetry{AccessLog: &v1alpha1.AccessLog{}}},
		{"traces-1%", routing.Telemetry{Tracing: traces(1)}},
		{"traces-100%", routing.Telemetry{Tracing: traces(100)}},
		{"all-1%", routing.Telemetry{Metrics: &byBackend, AccessLog: &v1alpha1.AccessLog{SamplingPercent: ptr.To[int32](1)}, Tracing: traces(1)}},
	} {
		all = append(all, &reported{name: s.name, bed: &bed{table: &routing.Table{Telemetry: s.Telemetry}}})
	}
	return all
}

// start starts the Envoy with its own backends.
func (r *reported) start(b *testing.B, path string) {
	b.Helper()
	source, table, err := buildTable("testdata/metrics")
	if err != nil {
		b.Fatal(err)
	}
	table.Telemetry, table.Protection, r.table = r.table.Telemetry, routing.Protection{}, table
	r.dir = b.TempDir()
	if r.backends, err = startBackends(source.Objects, r.dir); err != nil {
		b.Fatal(err)
	}
	// The backends of the tests record each request, and stop at 10,000.
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	b.Cleanup(server.Close)
	for address := range r.backends.addresses {
		r.backends.addresses[address] = server.Listener.Addr().String()
	}
	if collector := table.Telemetry.Tracing; collector != nil {
		address := strings.TrimPrefix(collector.Endpoint, "http://")
		r.backends.addresses[address] = address
	}
	if r.configuration, err = r.render(source); err != nil {
		b.Fatal(err)
	}
	if err := r.run(path, r.open); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = r.close() })
}

// measure sends the requests of a round.
func (r *reported) measure(b *testing.B) {
	b.Helper()
	before := r.cpuTime(b)
	var clients sync.WaitGroup
	for range benchClients {
		clients.Go(func() {
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			for range benchRequests {
				if err := r.request(transport); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	r.cpu = append(r.cpu, (r.cpuTime(b)-before)/(benchClients*benchRequests))
}

func (r *reported) request(transport *http.Transport) error {
	request, err := http.NewRequest(http.MethodGet, "http://"+r.open+"/?query=1", nil)
	if err != nil {
		return err
	}
	request.Host = "a.example.com"
	request.Header.Set("X-Forwarded-For", "192.0.2.7")
	request.Header.Set("CF-Ray", "8f1c2b3a4d5e6f70-FRA")
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: the status is %s", r.name, response.Status)
	}
	return nil
}

// cpuTime returns the CPU time that Envoy has used, in microseconds.
func (r *reported) cpuTime(b *testing.B) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid))
	if err != nil {
		b.Fatal(err)
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const user, system, tick = 11, 12, 10_000 // the position after the name, and microseconds
	sum := 0
	for _, field := range []int{user, system} {
		ticks, err := strconv.Atoi(fields[field])
		if err != nil {
			b.Fatal(err)
		}
		sum += ticks
	}
	return float64(sum) * tick
}

// startCollector starts the real OpenTelemetry collector, whose spans are dropped, and
// returns its address.
func startCollector(b *testing.B) string {
	b.Helper()
	path, err := binaries.Collector(b.Context(), b.Output())
	if err != nil {
		b.Fatal(err)
	}
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	b.Cleanup(sink.Close)
	address, err := freeAddress()
	if err != nil {
		b.Fatal(err)
	}
	process, err := controllerproc.Run(exec.Command(path, "--config", fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, compression: none, sending_queue: {enabled: false}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`, address, sink.URL)))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		process.Kill()
		<-process.Exited()
	})
	if err := (&bed{process: process}).awaitPorts([]string{address}); err != nil {
		b.Fatal(err)
	}
	return address
}
