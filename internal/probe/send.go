package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Limits for a request. The edge itself waits 100 seconds for an origin.
const (
	// answerLimit is how long Send waits for the answer's header.
	answerLimit = 30 * time.Second
	// bodyLimit is how long it reads the answer's body, which may never end.
	bodyLimit = 3 * time.Second
	// maxBody is how many bytes of the body it reads. Cloudflare's pages have about 10,000.
	maxBody = 64 << 10
)

// userAgent is what Send calls itself. Cloudflare blocks some clients that have no name.
const userAgent = "tunnel-gateway-check"

// Request is a visitor's request.
type Request struct {
	URL *url.URL
	// Method is GET if it is empty.
	Method string
	// Header is sent only to the URL's host, and only by https.
	Header http.Header
	// GRPC makes it a call of a gRPC method without a message: HTTP/2, POST, and
	// "content-type: application/grpc". A server rejects a call without a message before it
	// calls the method, unless the client sends a stream of messages.
	GRPC bool
	// WithoutEnvoy says that no Envoy marks its answers on the way to the backend, so that the
	// header Proxy-Status is a backend's.
	WithoutEnvoy bool
}

// Validate returns an error with everything that is wrong with the request. No error
// contains the value of a header.
func (r Request) Validate() error {
	var errs []error
	if r.URL.Scheme != "https" && r.URL.Scheme != "http" || r.URL.Hostname() == "" {
		errs = append(errs, fmt.Errorf("%q must be an http or https URL with a host", r.URL.Redacted()))
	}
	if r.URL.User != nil {
		errs = append(errs, errors.New("the URL must not contain a user or a password; send the header Authorization instead"))
	}
	if len(r.Header) > 0 && r.URL.Scheme == "http" {
		errs = append(errs, errors.New("headers are sent by https only, because http does not encrypt them; use an https URL"))
	}
	if r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method) { // both are tokens
		errs = append(errs, fmt.Errorf("method %q contains a character that is not allowed", r.Method))
	}
	for name, values := range r.Header {
		errs = append(errs, checkHeader(name, values))
	}
	return errors.Join(errs...)
}

// ownHeaders are the headers that belong to the connection and not to the caller.
var ownHeaders = []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Upgrade", "Te", "Trailer"}

func checkHeader(name string, values []string) error {
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return fmt.Errorf("header name %q contains a character that is not allowed", name)
	case slices.Contains(ownHeaders, http.CanonicalHeaderKey(name)):
		return fmt.Errorf("header %s cannot be set", http.CanonicalHeaderKey(name))
	case !slices.ContainsFunc(values, func(v string) bool { return !httpguts.ValidHeaderFieldValue(v) }):
		return nil
	}
	return fmt.Errorf("the value of header %s contains a character that is not allowed", http.CanonicalHeaderKey(name))
}

// Send sends the request once, and returns the answer. It follows no redirect, stores no
// cookie and uses no proxy. It sends nothing to a server whose certificate is not valid.
func Send(ctx context.Context, n Network, r Request) Answer {
	request, err := r.build(ctx)
	if err != nil {
		return Answer{Failure: Other, Err: err}
	}
	transport := &http.Transport{
		DialContext:            n.dial,
		DialTLSContext:         n.dialTLS,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      true,
		DisableCompression:     true, // Cloudflare's pages are read as they are
		ResponseHeaderTimeout:  answerLimit,
		MaxResponseHeaderBytes: maxBody,
	}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errNoAnswer)
	defer cancel()
	started := time.Now()
	response, err := transport.RoundTrip(request.WithContext(ctx))
	if err != nil {
		return Answer{Duration: time.Since(started), Failure: sendFailure(err), Err: err}
	}
	defer func() { _ = response.Body.Close() }() // it was read as far as it is needed
	duration := time.Since(started)
	var body []byte
	if response.StatusCode >= http.StatusMultipleChoices || r.GRPC {
		stop := time.AfterFunc(bodyLimit, cancel)
		defer stop.Stop()
		body, _ = io.ReadAll(io.LimitReader(response.Body, maxBody)) // the beginning of a broken body is enough
	}
	return observation{request: r, status: response.StatusCode, header: response.Header, trailer: response.Trailer, body: body}.answer(duration)
}

var errNoAnswer = fmt.Errorf("no answer within %s", answerLimit)

func (r Request) build(ctx context.Context) (*http.Request, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	header := http.Header{"User-Agent": {userAgent}, "Accept": {"*/*"}}
	if r.GRPC {
		method = http.MethodPost
		header.Set("Content-Type", "application/grpc")
		header.Set("Te", "trailers")
		header.Set("Grpc-Timeout", "10S")
	}
	for name, values := range r.Header {
		header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	request, err := http.NewRequestWithContext(ctx, method, r.URL.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header = header
	return request, nil
}

func sendFailure(err error) Failure {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return Untrusted
	}
	if handshake, ok := errors.AsType[*handshakeError](err); ok {
		return handshakeFailure(handshake.err)
	}
	return connectFailure(err)
}

// handshakeError is why a TLS handshake failed after a connection.
type handshakeError struct{ err error }

func (e *handshakeError) Error() string { return "TLS handshake: " + e.err.Error() }

func (e *handshakeError) Unwrap() error { return e.err }

// dialTLS connects to "host:port", and verifies the certificate for the host.
func (n Network) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	connection, err := n.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	client := tls.Client(connection, &tls.Config{
		ServerName: host, RootCAs: n.RootCAs, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12,
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	if err := client.HandshakeContext(ctx); err != nil {
		_ = connection.Close()
		return nil, &handshakeError{err}
	}
	return client, nil
}
