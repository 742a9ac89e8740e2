package xds_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// collector is the real OpenTelemetry collector, which forwards the spans to the test.
type collector struct {
	address string
	path    string
	command *exec.Cmd
	sink    *httptest.Server

	mu        sync.Mutex
	resources []*tracev1.ResourceSpans
}

// newCollector starts a collector.
func newCollector(t *testing.T) *collector {
	t.Helper()
	path, err := binaries.Collector(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: freeAddresses(t, 1)[0], path: path}
	c.sink = httptest.NewServer(c)
	t.Cleanup(c.sink.Close)
	c.start(t)
	return c
}

// start starts the process.
func (c *collector) start(t *testing.T) {
	t.Helper()
	configuration := fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q}}}}
exporters: {otlp_http: {endpoint: %q, compression: none, sending_queue: {enabled: false}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`, c.address, c.sink.URL)
	command := exec.Command(c.path, "--config", configuration)
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	c.command = command
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			t.Logf("The log of the collector:\n%s", log.String())
		}
	})
	await(t, "port of the collector", func() bool { return listens(c.address) })
}

// stop kills the process. It can be called again.
func (c *collector) stop() {
	_ = c.command.Process.Kill()
	_ = c.command.Wait()
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	request := &collectorv1.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(body, request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources = append(c.resources, request.ResourceSpans...)
}

// spans returns the spans that have arrived.
func (c *collector) spans() []*tracev1.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []*tracev1.Span
	for _, resource := range c.resources {
		for _, scope := range resource.ScopeSpans {
			all = append(all, scope.Spans...)
		}
	}
	return all
}
