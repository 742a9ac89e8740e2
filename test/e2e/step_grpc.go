package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// grpcTimeout limits one call.
const grpcTimeout = 20 * time.Second

// callGRPC calls each of the backend's methods.
func (s *scenario) callGRPC(ctx context.Context) (string, error) {
	host := s.host(grpcHost)
	conn, err := grpc.NewClient("passthrough:///"+host+":443", grpc.WithDisableRetry(),
		grpc.WithTransportCredentials(credentials.NewTLS(s.visitors.tls(host))),
		grpc.WithContextDialer(func(ctx context.Context, address string) (conn net.Conn, err error) {
			return s.visitors.dial(ctx, "tcp", address)
		}))
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // all calls have ended
	err = s.await(ctx, "a gRPC call", func(ctx context.Context) error {
		err := exchange(ctx, conn, callMethod, 1)
		if status.Code(err) == codes.PermissionDenied { // from status 403; see "HTTP to gRPC Status Code Mapping" of gRPC
			err = permanentError{fmt.Errorf("%w; turn gRPC on in the Network settings of the zone", err)}
		}
		return err
	})
	if err != nil {
		s.observe("call", "failed")
		return "", err
	}
	s.observe("call", resultOK)
	var errs []error
	for subject, call := range map[string]func() error{
		"stream":        func() error { return exchange(ctx, conn, streamMethod, 5) },
		"failed status": func() error { return checkFailure(ctx, conn) },
	} {
		if err := call(); err != nil {
			s.observe(subject, "failed")
			errs = append(errs, fmt.Errorf("%s: %w", subject, err))
			continue
		}
		s.observe(subject, resultOK)
	}
	return "a call, a stream in both directions and a failed call, each with its trailer", errors.Join(errs...)
}

// openCall begins a call that streams in both directions.
func openCall(ctx context.Context, conn *grpc.ClientConn, method string) (grpc.ClientStream, context.CancelFunc, error) {
	ctx, cancel := context.WithTimeout(ctx, grpcTimeout)
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	return stream, cancel, err
}

// exchange sends messages, each after the answer to the one before, and checks the
// answers and the trailer.
func exchange(ctx context.Context, conn *grpc.ClientConn, method string, messages int) error {
	stream, cancel, err := openCall(ctx, conn, method)
	defer cancel()
	if err != nil {
		return err
	}
	for i := range messages {
		want := fmt.Sprintf("message %d", i)
		if err := stream.SendMsg(wrapperspb.String(want)); err != nil && !errors.Is(err, io.EOF) { // the status follows
			return err
		}
		var got wrapperspb.StringValue
		if err := stream.RecvMsg(&got); err != nil {
			return fmt.Errorf("%s: %w", want, err)
		}
		if got.Value != want {
			return fmt.Errorf("got %q, want %q", got.Value, want)
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if err := stream.RecvMsg(&wrapperspb.StringValue{}); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the call does not end with the status OK: %w", err)
	}
	if got := stream.Trailer()["count"]; len(got) != 1 || got[0] != fmt.Sprint(messages) {
		return fmt.Errorf("the trailer has the count %q, want %d", got, messages)
	}
	return nil
}

// checkFailure checks that a failed call's status arrives.
func checkFailure(ctx context.Context, conn *grpc.ClientConn) error {
	stream, cancel, err := openCall(ctx, conn, failMethod)
	defer cancel()
	if err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	err = stream.RecvMsg(&wrapperspb.StringValue{})
	if status.Code(err) != status.Code(failure) || status.Convert(err).Message() != status.Convert(failure).Message() {
		return fmt.Errorf("got %w, want %w", err, failure)
	}
	return nil
}
