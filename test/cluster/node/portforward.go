package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// forwarding is a client's connection to the ports of a Pod. For each connection to a
// port, the client opens a stream for the error and a stream for the data.
type forwarding struct {
	node *Node
	pod  types.NamespacedName
	ctx  context.Context

	mu      sync.Mutex
	waiting map[string]httpstream.Stream // the error streams without their data stream, by request
}

// servePortForward is the part of the kubelet's API that `kubectl port-forward` needs.
func (n *Node) servePortForward(w http.ResponseWriter, r *http.Request) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return // Handshake has answered
	}
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	f := &forwarding{
		node: n, pod: types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")},
		ctx: ctx, waiting: map[string]httpstream.Stream{},
	}
	connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r, f.accept)
	if connection == nil {
		return // UpgradeResponse has answered
	}
	defer func() { _ = connection.Close() }()
	select {
	case <-connection.CloseChan():
	case <-ctx.Done():
	}
}

// accept handles a new stream.
func (f *forwarding) accept(stream httpstream.Stream, replySent <-chan struct{}) error {
	request := stream.Headers().Get(corev1.PortForwardRequestIDHeader)
	port, err := strconv.ParseUint(stream.Headers().Get(corev1.PortHeader), 10, 16)
	if err != nil {
		return fmt.Errorf("invalid port: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch stream.Headers().Get(corev1.StreamType) {
	case corev1.StreamTypeError:
		f.waiting[request] = stream
		return nil
	case corev1.StreamTypeData:
		errorStream := f.waiting[request]
		if errorStream == nil {
			return errors.New("the error stream is missing")
		}
		delete(f.waiting, request)
		go func() {
			<-replySent
			f.forward(stream, errorStream, int32(port)) //nolint:gosec // G115: ports have 16 bits
		}()
		return nil
	}
	return errors.New("unknown type of stream")
}

// forward copies between the stream and the port, until the process closes the connection.
func (f *forwarding) forward(data, errorStream httpstream.Stream, port int32) {
	defer func() {
		_ = data.Close()
		_ = errorStream.Close()
	}()
	connection, err := f.node.DialPod(f.ctx, f.pod, port)
	if err != nil {
		fmt.Fprint(errorStream, err)
		return
	}
	defer func() { _ = connection.Close() }()
	defer context.AfterFunc(f.ctx, func() { _ = connection.Close() })()
	go func() { _, _ = io.Copy(connection, data) }() // ends when the client closes or resets data
	_, _ = io.Copy(data, connection)
}
