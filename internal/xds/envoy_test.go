package xds_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/authority"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

const hostname = "app.example.com"

const patience = 30 * time.Second

// sidecar is the real Envoy with a server for it.
type sidecar struct {
	*xds.Server
	*ca
	// dir contains the files with Envoy's identity.
	dir     string
	metrics *recorder
	address string // the server's address
	stop    func()
	// open, protected and ready are the addresses on which Envoy listens.
	open, protected, ready string
	pid                    int // of Envoy
	// stdout is the file with Envoy's standard output, and stderr has the rest.
	stdout string
	stderr bytes.Buffer
}

// newSidecar starts a server without a publication, and Envoy.
func newSidecar(t *testing.T) *sidecar {
	t.Helper()
	return newSidecarWith(t, envoy.Bootstrap("127.0.0.1"))
}

// newSidecarWith starts a server without a publication, and Envoy with the bootstrap and
// further arguments.
func newSidecarWith(t *testing.T, bootstrap *bootstrapv3.Bootstrap, arguments ...string) *sidecar {
	t.Helper()
	path, err := binaries.Envoy(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	free := freeAddresses(t, 4)
	s := &sidecar{ca: newCA(t), dir: t.TempDir(), address: free[0], open: free[1], protected: free[2], ready: free[3]}
	s.startServer(t)
	t.Cleanup(func() { s.stop() })
	s.writeCertificates(t)
	s.startEnvoy(t, path, bootstrap, arguments...)
	return s
}

func (s *sidecar) startServer(t *testing.T) {
	t.Helper()
	s.metrics = &recorder{}
	server := xds.NewServer(xds.Options{
		Address: s.address, TLS: s.serverConfig(t), Identify: identify, Metrics: s.metrics,
		IsCurrent: func(authority.Identity) bool { return true }, Changed: func(types.NamespacedName) {},
	})
	s.Server = server
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Start(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the server ended with an error: %v", err)
		}
	}
}

// freeAddresses returns different addresses on which nothing listens. Clients do not use
// their IP address, so that none of them takes a port.
func freeAddresses(t *testing.T, count int) []string {
	t.Helper()
	addresses := make([]string, count)
	for i := range addresses {
		// An address that was closed now could be returned again.
		listener, err := net.Listen("tcp", "127.0.0.2:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() //nolint:errcheck // nothing was sent
		addresses[i] = listener.Addr().String()
	}
	return addresses
}

// writeCertificates writes the identity files.
func (s *sidecar) writeCertificates(t *testing.T) {
	t.Helper()
	client := s.client(t, shared, sharedTunnel, time.Hour)
	key, ok := client.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatalf("got a key of type %T", client.PrivateKey)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	const secret = `resources: [{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret, name: %s, %s}]`
	for name, content := range map[string]string{
		"tls.crt":       string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: client.Certificate[0]})),
		"tls.key":       string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})),
		"ca.crt":        string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw})),
		"sds-cert.yaml": fmt.Sprintf(secret, "client", fmt.Sprintf("tls_certificate: {certificate_chain: {filename: %[1]s/tls.crt}, private_key: {filename: %[1]s/tls.key}}", s.dir)),
		"sds-ca.yaml":   fmt.Sprintf(secret, "ca", fmt.Sprintf("validation_context: {trusted_ca: {filename: %s/ca.crt}}", s.dir)),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// startEnvoy starts Envoy with the sidecar bootstrap and other addresses and paths.
func (s *sidecar) startEnvoy(t *testing.T, path string, bootstrap *bootstrapv3.Bootstrap, further ...string) {
	t.Helper()
	bootstrap.StaticResources.Listeners = s.local(t, bootstrap.StaticResources.Listeners)
	for _, c := range bootstrap.StaticResources.Clusters {
		if c.Name == "xds" {
			setAddress(t, c.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().Address, s.address)
		}
	}
	text, err := protojson.Marshal(bootstrap)
	if err != nil {
		t.Fatal(err)
	}
	configuration := string(text)
	configuration = strings.ReplaceAll(configuration, `"`+envoy.CertificatesPath, `"`+s.dir)
	configuration = strings.ReplaceAll(configuration, `"/run/envoy`, `"`+s.dir)
	configuration = strings.ReplaceAll(configuration, `"`+envoy.CAPath, `"`+s.dir+"/"+envoy.CAFile)
	arguments := append([]string{"--config-yaml", configuration, "--concurrency", "2", "--disable-hot-restart", "-l", "warn", "--file-flush-interval-msec", "10"}, further...)
	command := exec.Command(path, arguments...)
	s.stdout = filepath.Join(s.dir, "stdout")
	stdout, err := os.Create(s.stdout)
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = stdout, &s.stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s.pid = command.Process.Pid
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = stdout.Close()
		if t.Failed() {
			t.Logf("The log of Envoy:\n%s", s.stderr.String())
		}
	})
}

// local returns the listeners with addresses on this machine.
func (s *sidecar) local(t *testing.T, all []*listenerv3.Listener) []*listenerv3.Listener {
	t.Helper()
	addresses := map[string]string{envoy.ListenerOpen: s.open, envoy.ListenerProtected: s.protected, envoy.ListenerReady: s.ready}
	local := make([]*listenerv3.Listener, len(all))
	for i, l := range all {
		local[i] = proto.CloneOf(l)
		setAddress(t, local[i].Address, addresses[l.Name])
	}
	return local
}

func setAddress(t *testing.T, address *corev3.Address, hostAndPort string) {
	t.Helper()
	resolved, err := net.ResolveTCPAddr("tcp", hostAndPort)
	if err != nil {
		t.Fatal(err)
	}
	socket := address.GetSocketAddress()
	socket.Ipv4Compat = false                                                                                                      // the address is an IPv4 address
	socket.Address, socket.PortSpecifier = resolved.IP.String(), &corev3.SocketAddress_PortValue{PortValue: uint32(resolved.Port)} //nolint:gosec // a port
}

// listens reports whether an Envoy listener accepts connections.
func listens(address string) bool {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func await(t *testing.T, what string, condition func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for !condition() {
		if time.Since(start) > patience {
			t.Fatalf("no %s within %s", what, patience)
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // polls a process
	}
	return time.Since(start)
}

// get returns the response status and body.
func (s *sidecar) get() (string, error) {
	request, err := http.NewRequest(http.MethodGet, "http://"+s.open+"/app", nil)
	if err != nil {
		return "", err
	}
	request.Host = hostname
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return fmt.Sprintf("%d %s", response.StatusCode, body), err
}

// awaitAnswer waits until Envoy responds as wanted.
func (s *sidecar) awaitAnswer(t *testing.T, want string) time.Duration {
	t.Helper()
	got := ""
	defer func() {
		if t.Failed() {
			t.Logf("the last answer was %q", got)
		}
	}()
	return await(t, fmt.Sprintf("answer %q", want), func() bool {
		got, _ = s.get()
		return got == want
	})
}

// backend starts a backend that responds with the text, and returns it as a Service.
func backend(t *testing.T, text string) (routing.Backend, *net.TCPAddr) {
	t.Helper()
	return backendWith(t, text, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
}

// backendWith starts a backend with the handler, and returns it as a Service.
func backendWith(t *testing.T, name string, handler http.HandlerFunc) (routing.Backend, *net.TCPAddr) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	address, ok := server.Listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("no TCP")
	}
	return backendAt(t, name, server), address
}

// backendAt returns the server as a Service with the name.
func backendAt(t *testing.T, name string, server *httptest.Server) routing.Backend {
	t.Helper()
	port, err := strconv.ParseInt(portOf(server), 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return routing.Backend{
		Service: types.NamespacedName{Namespace: "team", Name: name}, Protocol: routing.ProtocolHTTP,
		Port: int32(port), ServicePort: int32(port), ClusterIP: "127.0.0.1", Addressing: routing.AddressClusterIP,
	}
}

func portOf(server *httptest.Server) string {
	return server.URL[strings.LastIndexByte(server.URL, ':')+1:]
}

// tableFor returns a table in which app.example.com leads to the backend.
func tableFor(b routing.Backend) *routing.Table {
	route := &routing.Route{Kind: routing.KindHTTPRoute, NamespacedName: types.NamespacedName{Namespace: "team", Name: "app"}}
	return &routing.Table{ClusterDomain: "cluster.local", Groups: []routing.Group{{Hostname: hostname, Namespace: "team", Entries: []*routing.Entry{{
		Hostname: hostname, RouteHostname: hostname, Source: routing.Source{Route: route}, Match: &routing.Match{Path: routing.Path{Value: "/app"}},
		Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: b, Weight: 1}}}},
	}}}}}
}

// rendered returns a publication in which app.example.com leads to the backend.
func rendered(sequence int64, b routing.Backend) xds.Publication {
	return xds.Publication{
		Gateway: shared, Tunnel: sharedTunnel, Sequence: sequence, Listeners: envoy.Listeners(envoy.ReadyOptions{Metrics: true}, routing.Telemetry{}),
		Resources: envoy.Render(tableFor(b)), Assignments: envoy.Assignments{},
	}
}

func assignedTo(cluster string, address *net.TCPAddr) *endpointv3.ClusterLoadAssignment {
	a := assigned(cluster, address.IP.String())
	a.Endpoints[0].LbEndpoints[0].GetEndpoint().Address.GetSocketAddress().PortSpecifier = &corev3.SocketAddress_PortValue{PortValue: uint32(address.Port)} //nolint:gosec // a port
	return a
}

// publish publishes with addresses on this machine.
func (s *sidecar) publish(t *testing.T, p xds.Publication) {
	t.Helper()
	p.Listeners = s.local(t, p.Listeners)
	if err := s.Publish(p); err != nil {
		t.Fatal(err)
	}
}

func (s *sidecar) awaitAcknowledged(t *testing.T, sequence int64) {
	t.Helper()
	await(t, fmt.Sprintf("acknowledgement of sequence %d", sequence), func() bool { return s.State(shared).Acknowledged == sequence })
}

// The real Envoy waits for the first publication, and follows the publications after it.
func TestEnvoyFollowsPublications(t *testing.T) {
	s := newSidecar(t)
	await(t, "stream", func() bool { return s.State(shared).Connected == 1 })
	if listens(s.ready) {
		t.Error("Envoy is ready without a publication")
	}
	blue, _ := backend(t, "blue")
	s.publish(t, rendered(1, blue))
	t.Logf("Envoy is ready %s after the first publication", await(t, "port for probes", func() bool { return listens(s.ready) }))
	if got, err := s.get(); got != "200 blue" || !listens(s.protected) {
		t.Errorf("when Envoy is ready, it answers %q, %v", got, err)
	}
	s.awaitAcknowledged(t, 1)

	green, _ := backend(t, "green")
	s.publish(t, rendered(2, green))
	t.Logf("a change of a route is served after %s", s.awaitAnswer(t, "200 green"))
	s.awaitAcknowledged(t, 2)
	if got := s.State(shared); got.Connected != 1 || got.Rejected != "" {
		t.Errorf("the state is %+v", got)
	}
}

// An Envoy whose bootstrap comes from a newer controller asks for types that this
// server does not know. It keeps its stream, and gets everything else.
func TestEnvoyWithANewerBootstrapKeepsItsStream(t *testing.T) {
	bootstrap := envoy.Bootstrap("127.0.0.1")
	source := proto.CloneOf(bootstrap.DynamicResources.CdsConfig)
	source.InitialFetchTimeout = durationpb.New(100 * time.Millisecond)
	bootstrap.LayeredRuntime.Layers = append(bootstrap.LayeredRuntime.Layers, &bootstrapv3.RuntimeLayer{
		Name: "newer", LayerSpecifier: &bootstrapv3.RuntimeLayer_RtdsLayer_{RtdsLayer: &bootstrapv3.RuntimeLayer_RtdsLayer{Name: "newer", RtdsConfig: source}},
	})
	s := newSidecarWith(t, bootstrap)
	blue, _ := backend(t, "blue")
	s.publish(t, rendered(1, blue))
	s.awaitAcknowledged(t, 1)
	s.awaitAnswer(t, "200 blue")
	if got := s.State(shared); got.Connected != 1 || got.Rejected != "" || s.metrics.streams() != 1 {
		t.Errorf("the state is %+v", got)
	}
}

// Envoy is ready before a cluster has endpoints, and follows them.
func TestEnvoyFollowsEndpoints(t *testing.T) {
	s := newSidecar(t)
	service, first := backend(t, "first")
	_, second := backend(t, "second")
	service.ClusterIP, service.Headless = "", true
	p := rendered(1, service)
	cluster := p.Resources.Endpoints[0].Cluster
	s.publish(t, p)
	s.awaitAnswer(t, "503 no healthy upstream")
	s.awaitAcknowledged(t, 1)
	for _, test := range []struct {
		address *net.TCPAddr
		want    string
	}{{first, "200 first"}, {second, "200 second"}} {
		s.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{cluster: assignedTo(cluster, test.address)})
		t.Logf("changed endpoints are served after %s", s.awaitAnswer(t, test.want))
	}
	// A new cluster with endpoints is ready before the routes lead to it.
	third, address := backend(t, "third")
	third.ClusterIP, third.Headless = "", true
	p = rendered(2, third)
	p.Assignments[p.Resources.Endpoints[0].Cluster] = assignedTo(p.Resources.Endpoints[0].Cluster, address)
	failed := s.load(t)
	s.publish(t, p)
	t.Logf("a new cluster with endpoints is served after %s", s.awaitAnswer(t, "200 third"))
	s.awaitAcknowledged(t, 2)
	failed()
}

// load sends requests until the returned function is called, which checks that none failed.
func (s *sidecar) load(t *testing.T) (check func()) {
	t.Helper()
	var sent atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if got, err := s.get(); err != nil || !strings.HasPrefix(got, "200 ") {
				t.Errorf("a request failed: %q, %v", got, err)
				return
			}
			sent.Add(1)
		}
	}()
	await(t, "request", func() bool { return sent.Load() > 0 || t.Failed() })
	return func() {
		cancel()
		<-done
		t.Logf("%d requests", sent.Load())
	}
}

// While the server is away, and when another one has taken its place, no request fails, and
// nothing is sent again.
func TestEnvoyReconnects(t *testing.T) {
	s := newSidecar(t)
	blue, _ := backend(t, "blue")
	service, address := backend(t, "headless")
	service.ClusterIP, service.Headless = "", true
	p := rendered(1, blue)
	clusterOf := rendered(1, service).Resources
	p.Resources.Clusters = append(p.Resources.Clusters, clusterOf.Clusters...)
	p.Resources.Endpoints = clusterOf.Endpoints
	p.Assignments[clusterOf.Endpoints[0].Cluster] = assignedTo(clusterOf.Endpoints[0].Cluster, address)
	s.publish(t, p)
	s.awaitAnswer(t, "200 blue")
	s.awaitAcknowledged(t, 1)
	failed := s.load(t)
	s.stop()
	s.startServer(t)
	await(t, "stream", func() bool { return s.State(shared).Connected == 1 })
	s.publish(t, p)
	s.awaitAcknowledged(t, 1)
	failed()
	s.metrics.change(func() {
		if len(s.metrics.pushes) != 0 {
			t.Errorf("responses were sent after the reconnect, want none: %v", s.metrics.pushes)
		}
	})
	green, _ := backend(t, "green")
	s.publish(t, rendered(2, green))
	s.awaitAnswer(t, "200 green")
}

// What Envoy rejects does not change what it serves.
func TestEnvoyRejects(t *testing.T) {
	for _, test := range []struct {
		name string
		harm func(*envoy.Resources)
	}{
		{"routes", func(r *envoy.Resources) {
			r.Routes = slices.Clone(r.Routes)
			r.Routes[0] = proto.CloneOf(r.Routes[0])
			r.Routes[0].VirtualHosts[0].Routes[0].Match.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: "("}}
		}},
		{"clusters", func(r *envoy.Resources) {
			bad := proto.CloneOf(r.Clusters[0])
			bad.Name += "bad"
			bad.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().Address.GetSocketAddress().Address = "010.0.0.1"
			r.Clusters = append(r.Clusters, bad)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSidecar(t)
			blue, _ := backend(t, "blue")
			green, _ := backend(t, "green")
			s.publish(t, rendered(1, blue))
			s.awaitAnswer(t, "200 blue")
			s.awaitAcknowledged(t, 1)
			failed := s.load(t)
			bad := rendered(2, green)
			test.harm(bad.Resources)
			s.publish(t, bad)
			await(t, "rejection", func() bool { return s.State(shared).Rejected != "" })
			t.Log(s.State(shared).Rejected)
			if got, err := s.get(); got != "200 blue" || s.State(shared).Acknowledged != 1 {
				t.Errorf("the answer is %q, %v, and the state is %+v", got, err, s.State(shared))
			}
			s.publish(t, rendered(3, green))
			s.awaitAnswer(t, "200 green")
			s.awaitAcknowledged(t, 3)
			failed()
			if got := s.State(shared).Rejected; got != "" {
				t.Errorf("after a valid publication, Rejected is %q", got)
			}
		})
	}
}
