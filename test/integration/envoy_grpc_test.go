package integration

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// calls is a gRPC server. Each spec sets the handler for its calls.
type calls struct {
	*grpc.Server
	handler atomic.Pointer[grpc.StreamHandler]
}

// handle makes the handler serve the next calls.
func (c *calls) handle(handler grpc.StreamHandler) { c.handler.Store(&handler) }

// serveCalls creates a Service for a new server.
func (env *environment) serveCalls(name string) *calls {
	GinkgoHelper()
	c := &calls{}
	c.Server = grpc.NewServer(grpc.UnknownServiceHandler(func(server any, stream grpc.ServerStream) error { return (*c.handler.Load())(server, stream) }))
	listener, endpoint := listenBackend()
	go func() { _ = c.Serve(listener) }()
	DeferCleanup(c.Stop)
	env.backendAt(name, endpoint)
	return c
}

// dialEdge returns a client whose calls for the host go the same way as a visitor's: over
// HTTP/2 to the edge, through a connector, and over HTTP/1.1 to its Envoy.
func (env *environment) dialEdge(host string) *grpc.ClientConn {
	GinkgoHelper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	env.cloudflare.Listen(env.tunnel("shared"), listener)
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(host), grpc.WithDisableRetry())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return conn
}

// open begins a call that streams in both directions.
func open(ctx context.Context, conn *grpc.ClientConn, method string) grpc.ClientStream {
	GinkgoHelper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	Expect(err).NotTo(HaveOccurred())
	return stream
}

// receiver is a client's or server's stream.
type receiver interface{ RecvMsg(message any) error }

// receive returns the next message, or the error.
func receive(stream receiver) string {
	message := &wrapperspb.StringValue{}
	if err := stream.RecvMsg(message); err != nil {
		return err.Error()
	}
	return message.Value
}

// call makes a call with one message and returns its error.
func call(ctx context.Context, conn *grpc.ClientConn, method string) error {
	return conn.Invoke(ctx, method, wrapperspb.String("hello"), &wrapperspb.StringValue{})
}

var _ = Describe("gRPC with the data plane Envoy", withEnvoy, Ordered, ContinueOnFailure, func() {
	var (
		env     *environment
		backend *calls
		conn    *grpc.ClientConn
	)

	BeforeAll(func(ctx SpecContext) {
		env = newEnvoyEnvironment()
		env.startWithEnvoy()
		backend = env.serveCalls("web")
		backend.handle(func(_ any, stream grpc.ServerStream) error { return stream.SendMsg(wrapperspb.String("ready")) })
		env.create(env.gateway("shared", "*.example.com"), env.grpcRoute("calls"), env.failingCalls())
		Eventually(env.tunnel).WithArguments("shared").ShouldNot(BeEmpty())
		conn = env.dialEdge("calls.example.com")
		Eventually(call).WithArguments(ctx, conn, "/s/Ready").Should(Succeed())
	})

	It("carries metadata of requests, headers and trailers, also binary values", func(ctx SpecContext) {
		binary := string([]byte{0, 1, 0xff})
		sent := metadata.Pairs("text", "a", "text", "b, c", "data-bin", binary, "data-bin", "")
		var received metadata.MD
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			received, _ = metadata.FromIncomingContext(stream.Context())
			stream.SetTrailer(metadata.Join(sent, metadata.Pairs("in", "trailer")))
			return errors.Join(stream.SetHeader(metadata.Join(sent, metadata.Pairs("in", "header"))), stream.SendMsg(wrapperspb.String("answer")))
		})
		var header, trailer metadata.MD
		answer := &wrapperspb.StringValue{}
		Expect(conn.Invoke(metadata.NewOutgoingContext(ctx, sent), "/s/Unary", wrapperspb.String("hello"), answer, grpc.Header(&header), grpc.Trailer(&trailer))).To(Succeed())
		Expect(answer.Value).To(Equal("answer"))
		for _, got := range []metadata.MD{received, header, trailer} {
			Expect(got).To(HaveKeyWithValue("text", sent["text"]))
			Expect(got).To(HaveKeyWithValue("data-bin", sent["data-bin"]))
		}
		Expect(received).To(HaveKeyWithValue(":authority", []string{"calls.example.com"}))
		Expect(header).To(HaveKeyWithValue("in", []string{"header"}))
		Expect(trailer).To(HaveKeyWithValue("in", []string{"trailer"}))
	})

	It("does not delay the messages of streams", func(ctx SpecContext) {
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			for {
				message := receive(stream)
				if message == "EOF" {
					return stream.SendMsg(wrapperspb.String("end"))
				}
				if err := stream.SendMsg(wrapperspb.String("re: " + message)); err != nil {
					return err
				}
			}
		})
		stream := open(ctx, conn, "/s/Both")
		large := strings.Repeat("x", 3<<20)
		for _, message := range []string{"1", "2", large, "3", large} { // each after the answer to the last one
			Expect(stream.SendMsg(wrapperspb.String(message))).To(Succeed())
			Expect(receive(stream)).To(Equal("re: " + message))
		}
		Expect(stream.CloseSend()).To(Succeed())
		Expect(receive(stream)).To(Equal("end"))
		Expect(receive(stream)).To(Equal("EOF"))
	})

	It("sends each message of a server while the server waits", func(ctx SpecContext) {
		next := make(chan string)
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			for message := range next {
				if err := stream.SendMsg(wrapperspb.String(message)); err != nil {
					return err
				}
			}
			return nil
		})
		stream := open(ctx, conn, "/s/Server")
		Expect(stream.CloseSend()).To(Succeed())
		for _, message := range []string{"1", "2", "3"} {
			next <- message
			Expect(receive(stream)).To(Equal(message))
		}
		close(next)
		Expect(receive(stream)).To(Equal("EOF"))
	})

	It("sends each message of a client while the client waits", func(ctx SpecContext) {
		received := make(chan string)
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			for message := ""; message != "EOF"; received <- message {
				message = receive(stream)
			}
			return stream.SendMsg(wrapperspb.String("answer"))
		})
		stream := open(ctx, conn, "/s/Client")
		for _, message := range []string{"1", "2", "3"} {
			Expect(stream.SendMsg(wrapperspb.String(message))).To(Succeed())
			Eventually(received).Should(Receive(Equal(message)))
		}
		Expect(stream.CloseSend()).To(Succeed())
		Eventually(received).Should(Receive(Equal("EOF")))
		Expect(receive(stream)).To(Equal("answer"))
		Expect(receive(stream)).To(Equal("EOF"))
	})

	It("carries messages of 3 MiB in unary calls", func(ctx SpecContext) {
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			message := &wrapperspb.BytesValue{}
			return errors.Join(stream.RecvMsg(message), stream.SendMsg(message))
		})
		sent, got := bytes.Repeat([]byte("0123456789abcdef"), 3<<20/16), &wrapperspb.BytesValue{}
		for range 3 {
			Expect(conn.Invoke(ctx, "/s/Large", wrapperspb.Bytes(sent), got)).To(Succeed())
			Expect(got.Value).To(Equal(sent))
		}
	})

	It("carries deadlines and cancellation to the backend", func(ctx SpecContext) {
		ended := make(chan error, 1)
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			deadline, ok := stream.Context().Deadline()
			if err := stream.SetHeader(metadata.Pairs("deadline", map[bool]string{true: time.Until(deadline).Round(time.Minute).String()}[ok])); err != nil {
				return err
			}
			if method, _ := grpc.MethodFromServerStream(stream); method == "/s/Header" {
				if err := stream.SendHeader(nil); err != nil {
					return err
				}
			}
			<-stream.Context().Done()
			ended <- stream.Context().Err()
			return stream.Context().Err()
		})
		By("ending the call of a client that cancels it")
		for _, closeSend := range []bool{false, true} {
			call, cancel := context.WithTimeout(ctx, time.Hour)
			stream := open(call, conn, "/s/Header")
			if closeSend {
				Expect(stream.CloseSend()).To(Succeed())
			}
			header, err := stream.Header()
			Expect(err).NotTo(HaveOccurred())
			Expect(header["deadline"]).To(Equal([]string{"1h0m0s"}))
			cancel()
			Eventually(ended).Should(Receive(MatchError(context.Canceled)))
			Expect(receive(stream)).To(ContainSubstring("Canceled"))
		}
		By("ending a call at its deadline")
		for _, method := range []string{"/s/Header", "/s/NoHeader"} {
			limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			Expect(status.Code(call(limited, conn, method))).To(Equal(codes.DeadlineExceeded))
			cancel()
			Eventually(ended).Should(Receive())
		}
	})

	It("carries the status, message and trailer of a call that fails", func(ctx SpecContext) {
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			stream.SetTrailer(metadata.Pairs("reason", "a", "reason", "b", "reason-bin", "\x00\xff"))
			if method == "/s/AfterMessage" {
				if err := stream.SendMsg(wrapperspb.String("message")); err != nil {
					return err
				}
			}
			failure, err := status.New(codes.FailedPrecondition, "100% für ü\n").WithDetails(wrapperspb.String("detail"))
			if err != nil {
				return err
			}
			return failure.Err()
		})
		for _, method := range []string{"/s/TrailersOnly", "/s/AfterMessage"} {
			for range 20 {
				stream := open(ctx, conn, method)
				Expect(stream.CloseSend()).To(Succeed())
				var err error
				for err == nil {
					err = stream.RecvMsg(&wrapperspb.StringValue{})
				}
				failure := status.Convert(err)
				Expect(failure.Code()).To(Equal(codes.FailedPrecondition), failure.Message())
				Expect(failure.Message()).To(Equal("100% für ü\n"))
				Expect(failure.Details()).To(HaveLen(1))
				Expect(stream.Trailer()).To(HaveKeyWithValue("reason", []string{"a", "b"}))
				Expect(stream.Trailer()).To(HaveKeyWithValue("reason-bin", []string{"\x00\xff"}))
			}
		}
	})

	It("carries an answer that is complete before its request", func(ctx SpecContext) {
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			if method, _ := grpc.MethodFromServerStream(stream); method == "/s/AfterMessage" {
				receive(stream)
			}
			return status.Error(codes.PermissionDenied, "refused")
		})
		for _, method := range []string{"/s/AtOnce", "/s/AfterMessage"} {
			for range 10 {
				stream := open(ctx, conn, method)
				var err error
				for err == nil {
					err = stream.SendMsg(wrapperspb.String(strings.Repeat("x", 1<<20)))
				}
				Expect(err).To(MatchError(io.EOF))
				Expect(receive(stream)).To(Equal("rpc error: code = PermissionDenied desc = refused"))
			}
		}
	})

	DescribeTable("returns a gRPC status", func(ctx SpecContext, host, method string, code codes.Code) {
		failing := env.dialEdge(host)
		Eventually(func() codes.Code { return status.Code(call(ctx, failing, method)) }).Should(Equal(code))
	},
		Entry("UNAVAILABLE if the backend does not exist", "failing.example.com", "/s.Missing/Call", codes.Unavailable),
		Entry("UNAVAILABLE if a filter is not supported", "failing.example.com", "/s.Refused/Call", codes.Unavailable),
		Entry("UNAVAILABLE without backends", "failing.example.com", "/s.None/Call", codes.Unavailable),
		Entry("UNAVAILABLE without endpoints", "failing.example.com", "/s.Empty/Call", codes.Unavailable),
		Entry("UNIMPLEMENTED if no match applies", "failing.example.com", "/s.Other/Call", codes.Unimplemented),
		Entry("UNIMPLEMENTED if no route has the hostname", "other.example.com", "/s.Other/Call", codes.Unimplemented),
	)

	It("ends a call whose backend stops", func(ctx SpecContext) {
		backend.handle(func(_ any, stream grpc.ServerStream) error {
			defer func() { <-stream.Context().Done() }()
			return stream.SendMsg(wrapperspb.String("begin"))
		})
		stream := open(ctx, conn, "/s/Stop")
		Expect(receive(stream)).To(Equal("begin"))
		backend.Stop()
		Expect(receive(stream)).To(HavePrefix("rpc error: "))
	})
})

// failingCalls returns a GRPCRoute for failing.example.com whose services cannot be called.
func (env *environment) failingCalls() *gatewayv1.GRPCRoute {
	env.create(env.service("empty"))
	route := env.grpcRoute("failing")
	toBackend := route.Spec.Rules[0].BackendRefs
	rule := func(service string) *gatewayv1.GRPCRouteRule {
		route.Spec.Rules = append(route.Spec.Rules, gatewayv1.GRPCRouteRule{
			Matches: []gatewayv1.GRPCRouteMatch{{Method: &gatewayv1.GRPCMethodMatch{Service: ptr.To(service)}}},
		})
		return &route.Spec.Rules[len(route.Spec.Rules)-1]
	}
	toService := func(name gatewayv1.ObjectName) []gatewayv1.GRPCBackendRef {
		ref := *toBackend[0].DeepCopy()
		ref.Name = name
		return []gatewayv1.GRPCBackendRef{ref}
	}
	route.Spec.Rules = nil
	rule("s.None")
	rule("s.Missing").BackendRefs = toService("missing")
	rule("s.Empty").BackendRefs = toService("empty")
	refused := rule("s.Refused")
	refused.BackendRefs = toBackend
	refused.Filters = []gatewayv1.GRPCRouteFilter{{
		Type: gatewayv1.GRPCRouteFilterExtensionRef, ExtensionRef: &gatewayv1.LocalObjectReference{Group: "example.com", Kind: "Filter", Name: "any"},
	}}
	return route
}
