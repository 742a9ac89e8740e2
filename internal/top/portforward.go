package top

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// forwarder connects to pods' ports through the API server. It keeps its connection to
// each pod, so that the API server authorizes and audits one request for each pod.
//
// It opens streams itself: client-go's PortForwarder listens on a local port, to which every
// user on the machine could connect.
type forwarder struct {
	config *rest.Config
	// url returns the address for the pod's subresource portforward.
	url func(pod *corev1.Pod) *url.URL

	mu          sync.Mutex
	connections map[types.UID]httpstream.Connection
	requests    int
}

// get returns the response to a GET request to the pod's port. The caller closes the
// body.
func (f *forwarder) get(ctx context.Context, pod *corev1.Pod, port int, path string) (*http.Response, error) {
	connection, err := f.connection(ctx, pod)
	if err != nil {
		return nil, err
	}
	response, err := f.request(ctx, connection, port, path)
	if err != nil {
		f.forget(pod.UID, connection) // the next request dials again
	}
	return response, err
}

// connection returns the connection to the pod.
func (f *forwarder) connection(ctx context.Context, pod *corev1.Pod) (httpstream.Connection, error) {
	f.mu.Lock()
	connection := f.connections[pod.UID]
	f.mu.Unlock()
	if connection != nil {
		select {
		case <-connection.CloseChan():
			f.forget(pod.UID, connection)
		default:
			return connection, nil
		}
	}
	connection, err := dial(ctx, f.config, f.url(pod))
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.connections[pod.UID] = connection
	return connection, nil
}

// forget closes a connection.
func (f *forwarder) forget(pod types.UID, connection httpstream.Connection) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = connection.Close()
	delete(f.connections, pod)
}

// close closes all connections.
func (f *forwarder) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, connection := range f.connections {
		_ = connection.Close()
	}
	clear(f.connections)
}

// dial connects to a pod. Like kubectl, it tries WebSocket first, which passes more proxies,
// and then SPDY, for API servers that support only SPDY.
func dial(ctx context.Context, config *rest.Config, address *url.URL) (httpstream.Connection, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	webSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(address, config)
	if err != nil {
		return nil, err
	}
	dialer := portforward.NewFallbackDialerForStreaming(webSocket,
		spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, address),
		func(err error) bool { return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err) })
	type result struct {
		connection httpstream.Connection
		err        error
	}
	// The dialers have no context.
	dialed := make(chan result, 1)
	go func() {
		connection, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		dialed <- result{connection, err}
	}()
	select {
	case r := <-dialed:
		return r.connection, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialed; r.err == nil {
				_ = r.connection.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// request sends a request through a new stream. The kubelet writes its error to a second
// stream.
func (f *forwarder) request(ctx context.Context, connection httpstream.Connection, port int, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+"localhost"+path, nil)
	if err != nil {
		return nil, err
	}
	request.Close = true // the stream ends after the response
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, f.requestID())
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	errorStream, err := connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	_ = errorStream.Close() // only the kubelet writes to it
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open a stream: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = data.Reset()
		_ = errorStream.Reset()
	})
	end := func() error {
		stop()
		err := data.Reset()
		connection.RemoveStreams(data, errorStream)
		return err
	}
	if err := request.Write(data); err != nil {
		return nil, errors.Join(err, end())
	}
	response, err := http.ReadResponse(bufio.NewReader(data), request)
	if err != nil {
		reason := readError(errorStream, err)
		_ = end()
		return nil, errors.Join(ctx.Err(), reason)
	}
	response.Body = body{Reader: response.Body, close: end}
	return response, nil
}

// readError returns the kubelet's error, or err if it has sent none.
func readError(errorStream httpstream.Stream, err error) error {
	text, readErr := io.ReadAll(errorStream)
	if readErr == nil && len(text) > 0 {
		return errors.New(string(text))
	}
	return err
}

func (f *forwarder) requestID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests++
	return strconv.Itoa(f.requests)
}

// body is a response's body that ends its streams.
type body struct {
	io.Reader
	close func() error
}

// Close implements [io.Closer].
func (b body) Close() error { return b.close() }
