package xds_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// collector is the real OpenTelemetry collector, which forwards the spans to the test.
type collector struct {
	address string
	path    string
	// tls are the settings for TLS, or empty.
	tls     string
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

// restartWithTLS restarts the collector with a certificate of the authority for the name.
func (c *collector) restartWithTLS(t *testing.T, authority *ca, name string) {
	t.Helper()
	c.stop()
	dir := t.TempDir()
	certificate := authority.issue(t, time.Hour, x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: certificate.Certificate[0]}, "tls.key": {Type: "PRIVATE KEY", Bytes: key}} {
		if err := os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.tls = fmt.Sprintf(", tls: {cert_file: %[1]s/tls.crt, key_file: %[1]s/tls.key}", dir)
	c.start(t)
}

// start starts the process.
func (c *collector) start(t *testing.T) {
	t.Helper()
	configuration := fmt.Sprintf(`yaml:
receivers: {otlp: {protocols: {grpc: {endpoint: %q%s}}}}
exporters: {otlp_http: {endpoint: %q, compression: none, sending_queue: {enabled: false}}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {traces: {receivers: [otlp], exporters: [otlp_http]}}
`, c.address, c.tls, c.sink.URL)
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
