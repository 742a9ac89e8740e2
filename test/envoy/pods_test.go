package envoy

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"
)

// pod is an address behind a Service, and its HTTP server. Its name is the last part of
// its address in the manifests.
type pod struct {
	address string
	socket  int

	mu sync.Mutex
	// answer serves a request after the pod has counted it, or is nil for the status 200
	// with the address.
	answer   http.HandlerFunc
	requests int
}

// newPod reserves an address that refuses connections until the pod listens.
func newPod(t *testing.T) *pod {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(socket) })
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return &pod{address: fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port), socket: socket}
}

// listen accepts connections from now on.
func (p *pod) listen(t *testing.T) {
	t.Helper()
	if err := syscall.Listen(p.socket, 128); err != nil {
		t.Fatal(err)
	}
	duplicate, err := syscall.Dup(p.socket)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(duplicate), p.address)
	listener, err := net.FileListener(file)
	_ = file.Close()
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(p.serve)} // #nosec G112 -- Envoy is the only client
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
}

func (p *pod) serve(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.requests++
	answer := p.answer
	p.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	_, _ = fmt.Fprint(w, p.address)
}

// answerWith changes how the pod serves requests from now on.
func (p *pod) answerWith(answer http.HandlerFunc) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// take returns the number of requests since the last call.
func (p *pod) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := p.requests
	p.requests = 0
	return n
}

// deployment has the pods behind each Service, by the Service name.
type deployment map[string][]*pod

// deploy returns pods that refuse connections. counts has the number of pods for each Service.
func deploy(t *testing.T, counts map[string]int) deployment {
	t.Helper()
	d := deployment{}
	for service, n := range counts {
		for range n {
			d[service] = append(d[service], newPod(t))
		}
	}
	return d
}

// serve starts an Envoy with the settings for a GatewayClass and returns its address. The
// hostname of a Service is its name below example.com. extra are further manifests.
func (d deployment) serve(t *testing.T, settings string, extra ...string) string {
	t.Helper()
	manifests := append([]string{fmt.Sprintf(podsGateway, settings)}, extra...)
	addresses := map[string]string{}
	for i, service := range slices.Sorted(maps.Keys(d)) {
		var endpoints []string
		for n, p := range d[service] {
			ip := fmt.Sprintf("10.244.%d.%d", i, n+1)
			addresses[ip+":8080"] = p.address
			endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s]}", ip))
		}
		affinity := "None"
		if strings.HasPrefix(service, "sticky") {
			affinity = "ClientIP"
		}
		manifests = append(manifests, fmt.Sprintf(podsService, service, affinity, strings.Join(endpoints, ", ")))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "manifests.yaml"), []byte(strings.Join(manifests, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &bed{dir: t.TempDir(), backends: &backends{addresses: addresses}}
	source, table, err := buildTable(dir)
	if err != nil {
		t.Fatal(err)
	}
	b.table = table
	if b.configuration, err = b.render(source); err != nil {
		t.Fatal(err)
	}
	if err := b.run(findEnvoy(t), b.open); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.process.Kill()
		<-b.process.Exited()
		if t.Failed() {
			t.Logf("The log of Envoy:\n%s", b.log.String())
		}
	})
	return b.open
}

const podsGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec:
  controllerName: tunnelgateway.dev/controller
  parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, namespace: platform, name: envoy}
---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {namespace: platform, name: envoy}
spec: {dataPlane: Envoy, %s}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: all, port: 443, protocol: HTTPS, hostname: "*.example.com"}]}`

const podsService = `
{apiVersion: v1, kind: Service, metadata: {name: %[1]s}, spec: {clusterIP: None, sessionAffinity: %[2]s, ports: [{port: 80, targetPort: 8080}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [%[3]s]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: %[1]s}
spec: {parentRefs: [{name: shared}], hostnames: [%[1]s.example.com], rules: [{backendRefs: [{name: %[1]s, port: 80}]}]}`

// ask sends a GET request to a Service, with further header lines.
func ask(t *testing.T, address, service string, lines ...string) outcome {
	t.Helper()
	return send(t, address, request{method: "GET", target: "/", host: service + ".example.com", lines: lines}.text())
}

// askAtOnce sends requests to a Service at the same time, and counts the statuses.
func askAtOnce(t *testing.T, address, service string, n int) map[int]int {
	t.Helper()
	statuses := make([]int, n)
	var group errgroup.Group
	for i := range n {
		group.Go(func() error {
			o, err := exchange(address, request{method: "GET", target: "/", host: service + ".example.com"}.text())
			statuses[i] = o.status
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	counts := map[int]int{}
	for _, status := range statuses {
		counts[status]++
	}
	return counts
}
