package envoy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// serveGRPC handles the calls to all services. The method decides how.
func serveGRPC(b *backend, l net.Listener) {
	var options []grpc.ServerOption
	if b.tls != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(b.tls)))
	}
	server := grpc.NewServer(append(options, grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		called, _ := grpc.MethodFromServerStream(stream)
		method := called[strings.LastIndex(called, "/")+1:]
		received, _ := metadata.FromIncomingContext(stream.Context())
		if values := received["forge"]; len(values) > 0 {
			stream.SetTrailer(metadata.Pairs(envoy.HeaderProxyStatus, values[0]))
		}
		if method == "TrailersOnly" {
			stream.SetTrailer(metadata.Pairs("reason", "refused"))
			return status.Error(codes.PermissionDenied, "refused 100%")
		}
		if err := stream.SetHeader(metadata.Pairs("backend", b.name, "received", strings.Join(received["x-set"], ","))); err != nil {
			return err
		}
		stream.SetTrailer(metadata.Pairs("called", called))
		for {
			message := &wrapperspb.StringValue{}
			if err := stream.RecvMsg(message); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			for i := range map[string]int{"ServerStream": 3}[method] + 1 {
				message.Value = fmt.Sprintf("%s %d", message.Value, i)
				if err := stream.SendMsg(message); err != nil {
					return err
				}
			}
			if method == "FailAfterBody" {
				return status.Error(codes.DataLoss, "lost")
			}
		}
	}))...)
	_ = server.Serve(l) // until the listener is closed
}

// dial returns a client whose calls reach Envoy as a visitor's calls do: over HTTP/2 to
// the simulated edge, and from there over HTTP/1.1.
func (b *bed) dial(t *testing.T, host string) *grpc.ClientConn {
	t.Helper()
	edge := simulator.New(simulator.Options{})
	t.Cleanup(edge.Close)
	tunnel := createTunnel(t, edge)
	edge.SetConfiguration(tunnel, json.RawMessage(`{"ingress":[{"service":"http://`+b.open+`"}]}`))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	edge.Listen(tunnel, l)
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(host), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// createTunnel creates a tunnel and returns its ID.
func createTunnel(t *testing.T, edge *simulator.Server) string {
	t.Helper()
	request := httptest.NewRequest(http.MethodPost, "/client/v4/accounts/test/cfd_tunnel", strings.NewReader(`{"name":"test","config_src":"cloudflare"}`))
	request.Header.Set("Authorization", "Bearer test")
	answer := httptest.NewRecorder()
	edge.API().ServeHTTP(answer, request)
	id, ok := edge.TunnelID("test")
	if !ok {
		t.Fatalf("create a tunnel: %d %s", answer.Code, answer.Body)
	}
	return id
}

// call is the result of a call.
type call struct {
	header, trailer metadata.MD
	messages        []string
	err             error
}

// invoke sends one message and receives all responses.
func invoke(t *testing.T, conn *grpc.ClientConn, method string, headers ...string) call {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), headers...), 10*time.Second)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return call{err: err}
	}
	if err := errors.Join(stream.SendMsg(wrapperspb.String("hello")), stream.CloseSend()); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var c call
	for c.err == nil {
		message := &wrapperspb.StringValue{}
		if c.err = stream.RecvMsg(message); c.err == nil {
			c.messages = append(c.messages, message.Value)
		}
	}
	c.header, _ = stream.Header()
	c.trailer = stream.Trailer()
	if errors.Is(c.err, io.EOF) {
		c.err = nil
	}
	return c
}

func TestGRPCMatches(t *testing.T) {
	b := start(t)
	for host, rows := range map[string][]struct {
		method, version string
		// want is the backend, or the error code.
		want string
	}{
		"calls.grpc.example.com": {
			{"/test.Echo/Unary", "", "grpc"},
			{"/test.Echo/Other", "", "grpc-two"},
			{"/test.Echoes/Unary", "", "Unimplemented"},
			{"/Test.Echo/Unary", "", "Unimplemented"},
			{"/any.Service/Anywhere", "", "grpc"},
			{"/test.v12/GetItem", "", "grpc"},
			{"/test.v12/ListItems", "", "Unimplemented"},
			{"/testXv12/GetItem", "", "Unimplemented"},
			{"/test.Versions/Get", "2", "grpc-two"},
			{"/test.Versions/Get", "1.5", "grpc"},
			{"/test.Versions/Get", "", "Unimplemented"},
		},
		"every.grpc.example.com":   {{"/any.Service/Call", "", "grpc"}},
		"unknown.grpc.example.com": {{"/any.Service/Call", "", "Unimplemented"}},
		"failures.grpc.example.com": {
			{"/test.Unresolved/Call", "", "Unavailable"},
			{"/test.WithoutWeight/Call", "", "Unavailable"},
			{"/test.WithoutPods/Call", "", "Unavailable"},
		},
	} {
		conn := b.dial(t, host)
		for _, row := range rows {
			t.Run(host+row.method+" "+row.version, func(t *testing.T) {
				var headers, lines []string
				if row.version != "" {
					headers, lines = []string{"version", row.version}, []string{"version: " + row.version}
				}
				c := invoke(t, conn, row.method, headers...)
				got := status.Code(c.err).String()
				if c.err == nil {
					got = strings.Join(c.header["backend"], ",")
				}
				if got != row.want {
					t.Errorf("answered by %s: %v, want %s", got, c.err, row.want)
				}
				r := request{method: "POST", host: host, target: row.method, lines: lines}
				if problem := compareWithAnswer(b.table, r, grpcOutcome(c), false); problem != "" {
					t.Error("routing.Table.Answer:", problem)
				}
			})
		}
	}
}

// grpcOutcome returns the outcome of a call in HTTP terms.
func grpcOutcome(c call) outcome {
	switch status.Code(c.err) {
	case codes.OK:
		return outcome{status: http.StatusOK, arrival: &arrival{Backend: strings.Join(c.header["backend"], ",")}}
	case codes.Unimplemented:
		return outcome{status: http.StatusNotFound}
	default:
		return outcome{status: http.StatusServiceUnavailable}
	}
}

func TestGRPCAnswersArriveWithTrailers(t *testing.T) {
	b := start(t)
	conn := b.dial(t, "every.grpc.example.com")
	for _, test := range []struct {
		method   string
		messages int
		code     codes.Code
		message  string
	}{
		{"/test.Echo/Unary", 1, codes.OK, ""},
		{"/test.Echo/ServerStream", 4, codes.OK, ""},
		{"/test.Echo/FailAfterBody", 1, codes.DataLoss, "lost"},
		{"/test.Echo/TrailersOnly", 0, codes.PermissionDenied, "refused 100%"},
	} {
		t.Run(test.method, func(t *testing.T) {
			c := invoke(t, conn, test.method)
			if len(c.messages) != test.messages || status.Code(c.err) != test.code || status.Convert(c.err).Message() != test.message {
				t.Errorf("%d messages and %v, want %d and %s %q", len(c.messages), c.err, test.messages, test.code, test.message)
			}
			want := metadata.Pairs("called", test.method)
			if test.code == codes.PermissionDenied {
				want = metadata.Pairs("reason", "refused")
			}
			for name, values := range want {
				if got := c.trailer[name]; len(got) != 1 || got[0] != values[0] {
					t.Errorf("trailer %s: %q, want %q", name, got, values)
				}
			}
		})
	}
}

// TestGRPCStreamsInBothDirections sends each message after the answer to the last one.
func TestGRPCStreamsInBothDirections(t *testing.T) {
	b := start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := b.dial(t, "every.grpc.example.com").NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/test.Echo/Both")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		sent, got := wrapperspb.String(fmt.Sprint(i)), &wrapperspb.StringValue{}
		if err := stream.SendMsg(sent); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(got); err != nil || got.Value != sent.Value+" 0" {
			t.Fatalf("received %q, error %v", got.Value, err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if err := stream.RecvMsg(&wrapperspb.StringValue{}); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %v", err)
	}
}

func TestGRPCFilters(t *testing.T) {
	b := start(t)
	c := invoke(t, b.dial(t, "filters.grpc.example.com"), "/test.Echo/Unary")
	if got := strings.Join(c.header["received"], ""); c.err != nil || got != "request" {
		t.Errorf("the backend received the header %q, error %v", got, c.err)
	}
	if got := strings.Join(c.header["x-set"], ","); got != "response" {
		t.Errorf("the client received the header %q", got)
	}
}

// TestGRPCUnresolvedShare shows that a call fails as unavailable if it falls to the share
// of a backend that does not exist.
func TestGRPCUnresolvedShare(t *testing.T) {
	b := start(t)
	conn := b.dial(t, "failures.grpc.example.com")
	counts := map[codes.Code]int{}
	for range 200 {
		err := invoke(t, conn, "/test.Share/Call").err
		if c := status.Code(err); c != codes.OK && c != codes.Unavailable {
			t.Error(err)
		}
		counts[status.Code(err)]++
	}
	if n := counts[codes.Unavailable]; n < 50 || n > 150 || n+counts[codes.OK] != 200 {
		t.Errorf("codes: %v, want OK and Unavailable", counts)
	}
}

func TestGRPCBackendWithTLS(t *testing.T) {
	b := start(t)
	c := invoke(t, b.dial(t, "secure.grpc.example.com"), "/test.Echo/Unary")
	if got := strings.Join(c.header["backend"], ""); c.err != nil || got != "grpc-secure" {
		t.Errorf("answered by %q, error %v", got, c.err)
	}
}

// TestGRPCRequestHeaders compares the headers that arrive at a backend. Some servers refuse calls
// without "te: trailers".
func TestGRPCRequestHeaders(t *testing.T) {
	b := start(t)
	invoke(t, b.dial(t, "recorded.grpc.example.com"), "/test.Echo/Unary", "version", "1", "version", "2")
	got := b.backends.byName["h2c-calls"].await(t)[0]
	for _, line := range []string{"Content-Type: application/grpc", "Te: trailers", "Host: recorded.grpc.example.com", "Version: 1", "Version: 2"} {
		if !slices.Contains(got.Lines, line) {
			t.Errorf("%q did not arrive, but %q", line, got.Lines)
		}
	}
	if i := slices.IndexFunc(got.Lines, func(line string) bool { return nameOf(line) == "grpc-timeout" }); i < 0 || got.Start != "POST /test.Echo/Unary HTTP/2.0" {
		t.Errorf("%s arrived with %q", got.Start, got.Lines)
	}
}
