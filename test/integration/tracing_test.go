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

// spans is a collector that keeps what it gets.
type spans struct {
	collector.UnimplementedTraceServiceServer
	mu  sync.Mutex
	all []*tracing.Span
}

// Export is the call with which spans come.
func (s *spans) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			s.all = append(s.all, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// collect starts a collector, and returns it and its address.
func collect() (*spans, string) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	s, server := &spans{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	DeferCleanup(server.Stop)
	return s, listener.Addr().String()
}

// told returns the spans as "gateway: parent > span: error".
func (s *spans) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]string{}
	for _, span := range s.all {
		names[string(span.GetSpanId())] = span.GetName()
	}
	var told []string
	for _, span := range s.all {
		attributes := map[string]string{}
		for _, a := range span.GetAttributes() {
			attributes[a.GetKey()] = a.GetValue().GetStringValue()
		}
		told = append(told, fmt.Sprintf("%s/%s: %s > %s: %s", attributes["k8s.namespace.name"], attributes["gateway.name"],
			names[string(span.GetParentSpanId())], span.GetName(), span.GetStatus().GetMessage()))
	}
	return told
}

var _ = Describe("a trace", func() {
	It("has a span for each step of a pass, with the error that it ended with", func() {
		w := newWorld()
		sink, address := collect()
		w.start("--tracing-endpoint=http://" + address)
		g := w.gateway("shared", "a.example.com")
		w.create(g)
		of := w.namespace + "/shared: "
		Eventually(sink.told).Should(ContainElements(
			of+" > reconcile: ", of+"reconcile > load: ", of+"reconcile > build: ", of+"reconcile > manage: ", of+"reconcile > report: ",
		))
		w.edge.Inject(simulator.Fault{Method: http.MethodPut, Path: configurations, Status: http.StatusInternalServerError, Times: pastRetries})
		w.create(w.service("web"), w.route("web", "web", toGateway("shared")))
		Eventually(sink.told).Should(ContainElement(And(HavePrefix(of+"reconcile > manage: "), ContainSubstring("500"))))
		w.edge.ClearFaults()
		w.delete(g)
		Eventually(w.isGone).WithArguments(g).Should(BeTrue())
		Eventually(w.tunnelPhase(g)).Should(Equal("no Tunnel"))
		w.stop() // sends what is left
	})
})
