package integration

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracing "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// spanCollector is an OpenTelemetry collector that stores the spans that it
// receives.
type spanCollector struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	all []*tracing.Span
}

// Export implements [collector.TraceServiceServer].
func (s *spanCollector) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			s.all = append(s.all, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// startCollector starts a collector, and returns it and its address.
func startCollector() (*spanCollector, string) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	s, server := &spanCollector{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Stop)
	return s, listener.Addr().String()
}

// descriptions returns each span as "gateway: parent > span: error".
func (s *spanCollector) descriptions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]string{}
	for _, span := range s.all {
		names[string(span.GetSpanId())] = span.GetName()
	}
	var found []string
	for _, span := range s.all {
		attributes := map[string]string{}
		for _, a := range span.GetAttributes() {
			attributes[a.GetKey()] = a.GetValue().GetStringValue()
		}
		found = append(found, fmt.Sprintf("%s/%s: %s > %s: %s", attributes["k8s.namespace.name"], attributes["gateway.name"],
			names[string(span.GetParentSpanId())], span.GetName(), span.GetStatus().GetMessage()))
	}
	return found
}

var _ = Describe("a trace of the controller", func() {
	It("has a span for each reconcile step, with its error", func() {
		env := newEnvironment()
		sink, address := startCollector()
		env.start("--tracing-endpoint=http://" + address)
		g := env.gateway("shared", "a.example.com")
		env.create(g)
		gateway := env.namespace + "/shared: "
		Eventually(sink.descriptions).Should(ContainElements(
			gateway+" > reconcile: ", gateway+"reconcile > load: ", gateway+"reconcile > build: ", gateway+"reconcile > manage: ", gateway+"reconcile > report: ",
		))
		env.cloudflare.Inject(simulator.Fault{Method: http.MethodPut, Path: configurationPath, Status: http.StatusInternalServerError, Times: failuresBeyondRetries})
		env.create(env.service("web"), env.route("web", "web", gatewayParent("shared")))
		Eventually(sink.descriptions).Should(ContainElement(And(HavePrefix(gateway+"reconcile > manage: "), ContainSubstring("500"))))
		env.cloudflare.ClearFaults()
		env.delete(g)
		Eventually(env.isGone).WithArguments(g).Should(BeTrue())
		Eventually(env.tunnelPhase(g)).Should(Equal("no Tunnel"))
		env.stop() // sends the remaining spans
	})
})
