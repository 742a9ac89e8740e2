package node_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// dialers returns the dialers that clients of the API server use, to forward ports of the
// Pod.
func dialers(t *testing.T, pod *corev1.Pod) map[string]httpstream.Dialer {
	t.Helper()
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	webSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, testCluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(testCluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]httpstream.Dialer{
		"WebSocket": webSocket,
		"SPDY":      spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
	}
}

// forward forwards a free local port to the Pod's port until the test ends. It returns the
// local address.
func forward(t *testing.T, dialer httpstream.Dialer, port int) string {
	t.Helper()
	stop, isReady, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewForStreaming(dialer, []string{fmt.Sprintf("0:%d", port)}, stop, isReady, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- forwarder.ForwardPorts() }()
	select {
	case err := <-done:
		t.Fatal(err)
	case <-isReady:
	}
	t.Cleanup(func() {
		close(stop)
		if err := <-done; err != nil {
			t.Log("forwarding ended: ", err) // if a connection has failed
		}
	})
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}

func TestPortForwardConnectsToThePod(t *testing.T) {
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	want := getFromPod(t, pod, "/")
	for name, dialer := range dialers(t, pod) {
		t.Run(name, func(t *testing.T) {
			address := forward(t, dialer, 8080)
			for range 3 {
				got, err := get(t.Context(), address, "/")
				if err != nil || got != want {
					t.Errorf("the response is %q, %v, want %q", got, err, want)
				}
			}
		})
		t.Run(name+", a port that the Pod does not have", func(t *testing.T) {
			address := forward(t, dialer, 7070)
			if got, err := get(t.Context(), address, "/"); err == nil {
				t.Errorf("the response is %q, want an error", got)
			}
		})
	}
}
