package node_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/test/netns"
)

// getDirectly sends a request with a new connection and without the node's dialer.
func getDirectly(t *testing.T, address, path string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func TestEveryProcessCanConnectToPodsAndServices(t *testing.T) {
	netns.Require(t)
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	web := service(pod, nil)
	create(t, pod, web)
	eventuallyReady(t, pod)
	g := NewWithT(t)
	clusterIP := web.Spec.ClusterIP + ":80"
	for _, address := range []string{pod.Status.PodIP + ":8080", clusterIP} {
		g.Eventually(getDirectly, timeout).WithArguments(t, address, "/").Should(Equal("echo"), "%s", address)
	}
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{pod.Status.PodIP + ":8080", clusterIP} {
		g.Eventually(func() error {
			_, err := getDirectly(t, address, "/")
			return err
		}, timeout).Should(MatchError(syscall.ECONNREFUSED), "%s", address)
	}
}

func TestServedServiceSelectsItsEndpointsInTurn(t *testing.T) {
	netns.Require(t)
	t.Parallel()
	ns := namespace(t)
	one, two := echo(ns, "one", nil), echo(ns, "two", nil)
	one.Labels, two.Labels = map[string]string{"app": "both"}, map[string]string{"app": "both"}
	both := service(one, nil)
	create(t, one, two, both)
	eventuallyReady(t, one)
	eventuallyReady(t, two)
	NewWithT(t).Eventually(func(g Gomega) {
		var answers []string
		for range 2 {
			answer, err := getDirectly(t, both.Spec.ClusterIP+":80", "/")
			g.Expect(err).NotTo(HaveOccurred())
			answers = append(answers, answer)
		}
		g.Expect(answers).To(ConsistOf("one", "two"))
	}, timeout).Should(Succeed())
}

func TestRestartedContainerIsServedAgain(t *testing.T) {
	netns.Require(t)
	t.Parallel()
	pod := echo(namespace(t), "echo", nil)
	create(t, pod)
	eventuallyReady(t, pod)
	address := pod.Status.PodIP + ":8080"
	g := NewWithT(t)
	g.Eventually(getDirectly, timeout).WithArguments(t, address, "/").Should(Equal("echo"))
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if err := testNode.KillContainer(t.Context(), client.ObjectKeyFromObject(pod), "echo"); err != nil {
		t.Fatal(err)
	}
	eventuallyEnds(t, connection)
	g.Eventually(getDirectly, timeout).WithArguments(t, address, "/").Should(Equal("echo"))
}

// TestServedAddressesForwardEOFAndReset uses a Service with an endpoint in
// this process.
func TestServedAddressesForwardEOFAndReset(t *testing.T) {
	netns.Require(t)
	t.Parallel()
	listener, err := net.Listen("tcp", "10.97.0.1:0") // Kubernetes permits no loopback addresses
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	address := serviceFor(t, listener)
	var client net.Conn
	NewWithT(t).Eventually(func() error {
		client, err = net.Dial("tcp", address)
		return err
	}, timeout).Should(Succeed())
	server := accept(t, listener)

	_, err = io.WriteString(client, "question")
	if err := errors.Join(err, client.(*net.TCPConn).CloseWrite()); err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(server); string(content) != "question" || err != nil {
		t.Errorf("the server got %q, %v", content, err)
	}
	// The client can still receive.
	if _, err := io.WriteString(server, "answer"); err != nil {
		t.Error(err)
	}
	answer := make([]byte, len("answer"))
	if _, err := io.ReadFull(client, answer); string(answer) != "answer" || err != nil {
		t.Errorf("the client got %q, %v", answer, err)
	}
	if err := errors.Join(server.(*net.TCPConn).SetLinger(0), server.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(answer); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: got %v, want %v", err, syscall.ECONNRESET)
	}
}

// serviceFor creates a Service whose only endpoint is the listener, and returns its
// address.
func serviceFor(t *testing.T, listener net.Listener) string {
	t.Helper()
	address := listener.Addr().(*net.TCPAddr)
	number := int32(address.Port) //nolint:gosec // G115: a port
	manual := service(echo(namespace(t), "manual", nil), func(s *corev1.ServiceSpec) { s.Selector = nil })
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: manual.Namespace, Name: "manual", Labels: map[string]string{discoveryv1.LabelServiceName: "manual"},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address.IP.String()}}},
		Ports:       []discoveryv1.EndpointPort{{Name: new("web"), Port: &number}},
	}
	create(t, manual, slice)
	return manual.Spec.ClusterIP + ":80"
}

func TestTerminatingEndpointsServeAServiceWithoutReadyOnes(t *testing.T) {
	t.Parallel()
	r := newRecorder(t)
	pod := echo(namespace(t), "echo", func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = append(environment(r, "echo"), corev1.EnvVar{Name: "HANG_ON_SIGTERM", Value: "yes"})
	})
	create(t, pod, service(pod, nil))
	eventuallyReady(t, pod)
	name := "echo." + pod.Namespace + ".svc:80"
	eventuallyAnswers(t, name, "echo")
	if err := kube.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	NewWithT(t).Eventually(r.all, timeout).Should(ContainElement("echo stop"))
	eventually(t, pod, func(g Gomega) { g.Expect(pod.DeletionTimestamp).NotTo(BeNil()) })
	NewWithT(t).Eventually(func(g Gomega) {
		var slices discoveryv1.EndpointSliceList
		g.Expect(kube.List(t.Context(), &slices, client.InNamespace(pod.Namespace))).To(Succeed())
		g.Expect(slices.Items).To(HaveLen(1))
		g.Expect(slices.Items[0].Endpoints).To(HaveLen(1))
		g.Expect(slices.Items[0].Endpoints[0].Conditions.Terminating).To(HaveValue(BeTrue()))
	}, timeout).Should(Succeed())
	if answer, err := get(t.Context(), name, "/"); err != nil || !strings.Contains(answer, "echo") {
		t.Errorf("got %q, %v", answer, err)
	}
	if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Error(err)
	}
}
