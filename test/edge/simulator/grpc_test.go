package simulator_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
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

	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// newGRPC returns a client for a data path that leads to a gRPC server, which handles all
// calls with the handler.
func newGRPC(t *testing.T, handler grpc.StreamHandler) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(handler), grpc.Creds(credentials.NewServerTLSFromCert(&newCertificate(t)[0])))
	t.Cleanup(server.Stop)
	go func() { _ = server.Serve(l) }() // until the server is stopped
	return dialGRPC(t, "https://app:80", l.Addr().String())
}

// newCertificate returns the certificate that net/http's test servers use.
func newCertificate(t *testing.T) []tls.Certificate {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return server.TLS.Certificates
}

// dialGRPC returns a client for a data path with a rule for the service, which is at the
// address.
func dialGRPC(t *testing.T, service, address string) *grpc.ClientConn {
	t.Helper()
	s, id, edge := newTunnel(t, simulator.Options{Dial: origins{"app:80": address}.dial})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"service":"`+service+`","originRequest":{"noTLSVerify":true,"http2Origin":true}}]}`))
	return newGRPCClient(t, edge, insecure.NewCredentials())
}

func newGRPCClient(t *testing.T, address string, transport credentials.TransportCredentials) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(transport), grpc.WithDisableRetry())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// open begins a call that streams in both directions.
func open(t *testing.T, conn *grpc.ClientConn, method string) (stream grpc.ClientStream, cancel context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		t.Fatal(err)
	}
	return stream, cancel
}

func TestGRPCStatusIsForwarded(t *testing.T) {
	binary := string([]byte{0, 1, 0xff})
	conn := newGRPC(t, func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		stream.SetTrailer(metadata.Pairs("text", "a", "text", "b", "data-bin", binary))
		if strings.Contains(method, "Header") {
			if err := stream.SendHeader(metadata.Pairs("data-bin", binary)); err != nil {
				return err
			}
		}
		if strings.Contains(method, "Message") {
			if err := stream.SendMsg(wrapperspb.String("message")); err != nil {
				return err
			}
		}
		return status.Error(codes.DataLoss, "100% lost\n")
	})
	for _, method := range []string{"/s/", "/s/Header", "/s/HeaderMessage", "/s/Message"} {
		for range 20 { // a header can arrive before or after it is known that the response has ended
			stream, _ := open(t, conn, method)
			_ = stream.CloseSend()
			messages, err := receiveAll(stream)
			if want := "rpc error: code = DataLoss desc = 100% lost\n"; err.Error() != want || messages != strings.Count(method, "Message") {
				t.Fatalf("%s: %d messages and %q, want %q", method, messages, err, want)
			}
			if header, _ := stream.Header(); strings.Contains(method, "Header") && header["data-bin"][0] != binary {
				t.Fatalf("%s: header %v", method, header)
			}
			trailer := stream.Trailer()
			if got := append(trailer["text"], trailer["data-bin"]...); !slices.Equal(got, []string{"a", "b", binary}) {
				t.Fatalf("%s: trailer %q", method, trailer)
			}
		}
	}
}

// receiveAll counts the messages, and returns the error at the end of the stream.
func receiveAll(stream grpc.ClientStream) (messages int, err error) {
	for {
		if err := stream.RecvMsg(&wrapperspb.BytesValue{}); err != nil {
			return messages, err
		}
		messages++
	}
}

// TestGRPCStatusInTheHeaderIsForwarded has an answer without a body, as Envoy sends it over HTTP/1.1
// for a call that fails before its first message.
func TestGRPCStatusInTheHeaderIsForwarded(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Grpc-Status", "12")
		w.Header().Set("Grpc-Message", "unknown")
	}))
	t.Cleanup(origin.Close)
	conn := dialGRPC(t, "http://app:80", origin.Listener.Addr().String())
	for range 200 { // as above
		stream, _ := open(t, conn, "/s/Call")
		_ = stream.CloseSend()
		if _, err := receiveAll(stream); err.Error() != "rpc error: code = Unimplemented desc = unknown" {
			t.Fatal(err)
		}
	}
}

func TestGRPCClientsCanUseTLS(t *testing.T) {
	s, id, _ := newTunnel(t, simulator.Options{})
	s.SetConfiguration(id, json.RawMessage(`{"ingress":[{"service":"http_status:404"}]}`))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: newCertificate(t), NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	s.Listen(id, l)
	conn := newGRPCClient(t, l.Addr().String(), credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})) // #nosec G402 -- the test verifies no certificate
	stream, _ := open(t, conn, "/s/Call")
	if _, err := receiveAll(stream); status.Code(err) != codes.Unimplemented { // from the status 404
		t.Error(err)
	}
}

func TestGRPCMessagesAreNotDelayed(t *testing.T) {
	conn := newGRPC(t, func(_ any, stream grpc.ServerStream) error {
		for {
			message := &wrapperspb.BytesValue{}
			if err := stream.RecvMsg(message); err != nil {
				return nil //nolint:nilerr // the client has closed the stream, or waits for an answer in vain
			}
			if err := stream.SendMsg(message); err != nil {
				return err
			}
		}
	})
	stream, _ := open(t, conn, "/s/Echo")
	large := bytes.Repeat([]byte("x"), 3<<20)
	for i, sent := range [][]byte{{1}, {2}, large, {3}, large} { // each after the answer to the last one
		got := &wrapperspb.BytesValue{}
		if err := stream.SendMsg(wrapperspb.Bytes(sent)); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(got); err != nil || !bytes.Equal(got.Value, sent) {
			t.Fatalf("answer %d: %d bytes, error %v", i, len(got.Value), err)
		}
	}
	_ = stream.CloseSend()
	if messages, err := receiveAll(stream); messages > 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the stream ends with %d messages and %v", messages, err)
	}
}

func TestGRPCCancellationReachesTheOrigin(t *testing.T) {
	ended := make(chan error, 1)
	conn := newGRPC(t, func(_ any, stream grpc.ServerStream) error {
		if err := stream.SendHeader(nil); err != nil {
			return err
		}
		<-stream.Context().Done()
		ended <- stream.Context().Err()
		return nil
	})
	for _, closeSend := range []bool{false, true} {
		stream, cancel := open(t, conn, "/s/Wait")
		if closeSend {
			_ = stream.CloseSend()
		}
		if _, err := stream.Header(); err != nil {
			t.Fatal(err)
		}
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("the call ended at the origin with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("the call has not ended at the origin")
		}
	}
}

func TestGRPCAnswerEndsBeforeItsRequest(t *testing.T) {
	conn := newGRPC(t, func(_ any, stream grpc.ServerStream) error {
		if method, _ := grpc.MethodFromServerStream(stream); method == "/s/AfterMessage" {
			if err := stream.RecvMsg(&wrapperspb.StringValue{}); err != nil {
				return err
			}
		}
		return status.Error(codes.PermissionDenied, "no")
	})
	for _, method := range []string{"/s/AtOnce", "/s/AfterMessage"} {
		stream, _ := open(t, conn, method)
		var err error
		for err == nil {
			err = stream.SendMsg(wrapperspb.String(strings.Repeat("x", 1<<20)))
		}
		if _, err = receiveAll(stream); err.Error() != "rpc error: code = PermissionDenied desc = no" {
			t.Errorf("%s: %v", method, err)
		}
	}
}
