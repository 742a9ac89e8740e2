package metrics

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// envoyBed is an Envoy that serves the routes in testdata/traffic.yaml, with its backends.
type envoyBed struct {
	t *testing.T
	// visitors connect to Envoy with every host.
	visitors *http.Client
	admin    string
	// arrived gets a value for each request to a backend that waits until its visitor
	// leaves.
	arrived chan struct{}
}

// startEnvoy starts an Envoy that counts requests by the dimensions.
func startEnvoy(t *testing.T, by ...v1alpha1.MetricsDimension) *envoyBed {
	t.Helper()
	b := &envoyBed{t: t, admin: freeAddress(t), arrived: make(chan struct{}, 100)}
	open, protected := freeAddress(t), freeAddress(t)
	bootstrap := envoy.Static(b.resources(buildTable(t, by)))
	for i, address := range []string{open, protected} {
		bootstrap.StaticResources.Listeners[i].Address = socketAddress(t, address)
	}
	bootstrap.Admin = &bootstrapv3.Admin{Address: socketAddress(t, b.admin)}
	// Envoy adds values to histograms at this interval. Only the test does not want to wait.
	bootstrap.StatsFlush = nil
	bootstrap.StatsFlushInterval = durationpb.New(50 * time.Millisecond)
	b.run(bootstrap, open, protected)
	dialer := &net.Dialer{}
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, open)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	b.visitors = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return b
}

// buildTable returns the routing table for the manifests, with metrics by the dimensions.
func buildTable(t *testing.T, by []v1alpha1.MetricsDimension) *routing.Table {
	t.Helper()
	text, err := os.ReadFile("testdata/traffic.yaml")
	must(t, err)
	dimensions := strings.ReplaceAll(fmt.Sprint(by), " ", ", ")
	file := filepath.Join(t.TempDir(), "traffic.yaml")
	must(t, os.WriteFile(file, []byte(replaceOnce(t, string(text), "by: [Route, Backend]", "by: "+dimensions)), 0o600))
	options := gateway.Options{
		ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
		DataPlanes: routing.DataPlanes{v1alpha1.DataPlaneEnvoy: envoy.Capabilities()},
	}
	source, err := state.FromFiles([]string{file}, manifest.Options{}, options.ControllerName, config.DefaultClassName)
	must(t, err)
	if len(source.Warnings) > 0 {
		t.Fatal(source.Warnings)
	}
	loader := state.Loader{
		Reader: source, ControllerName: options.ControllerName, ControllerNamespace: options.ControllerNamespace,
		Certificates: state.DirectCertificates{Reader: source}, CABundles: state.DirectCABundles{Reader: source},
	}
	loaded, err := loader.Load(t.Context(), state.GatewayKey(sharedGateway.Namespace, sharedGateway.Name))
	must(t, err)
	loaded.Snapshot.Now = startTime
	result := gateway.Build(loaded.Snapshot, options)
	if result.Table == nil {
		t.Fatal("the Gateway is not accepted")
	}
	return result.Table
}

// resources renders the table, with a backend on this machine for each Service.
func (b *envoyBed) resources(table *routing.Table) (*envoy.Resources, map[string]*endpointv3.ClusterLoadAssignment) {
	b.t.Helper()
	resources := envoy.Render(table)
	backends := b.startBackends()
	assignments := map[string]*endpointv3.ClusterLoadAssignment{}
	for _, of := range resources.Endpoints {
		address := backends[of.Service.String()]
		if address == "" {
			continue
		}
		assignments[of.Cluster] = &endpointv3.ClusterLoadAssignment{ClusterName: of.Cluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
				Endpoint: &endpointv3.Endpoint{Address: socketAddress(b.t, address)},
			}}},
		}}}
	}
	return resources, assignments
}

// body is what the backends that answer respond with.
const body = "hello"

// cartDelay is how long the backend for carts takes at least.
const cartDelay = 30 * time.Millisecond

// startBackends starts a backend for each Service but one, and returns their addresses.
func (b *envoyBed) startBackends() map[string]string {
	answer := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
	handlers := map[string]http.HandlerFunc{
		"shop/web":    answer,
		"shop/cart":   func(w http.ResponseWriter, r *http.Request) { time.Sleep(cartDelay); answer(w, r) }, //nolint:forbidigo // a slow backend
		"shop/fails":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"shop/resets": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"shop/breaks": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"shop/socket": b.endSocket,
		"shop/waits":  b.wait,
		"blog/web":    answer,
		"blog/stream": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			b.wait(w, r)
		},
		"blog/calls": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Status", map[string]string{"/shop.Cart/Get": "14", "/shop.Cart/Missing": "12"}[r.URL.Path])
		},
	}
	addresses := map[string]string{"shop/refuses": freeAddress(b.t)}
	for service, handler := range handlers {
		server := httptest.NewUnstartedServer(handler)
		server.Config.Protocols = &http.Protocols{}
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		b.t.Cleanup(server.Close)
		addresses[service] = server.Listener.Addr().String()
	}
	return addresses
}

// wait returns when the visitor has left.
func (b *envoyBed) wait(_ http.ResponseWriter, r *http.Request) {
	b.arrived <- struct{}{}
	<-r.Context().Done()
}

// endSocket accepts a WebSocket and ends it.
func (b *envoyBed) endSocket(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		b.t.Error(err)
		return
	}
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	if err := errors.Join(err, conn.Close()); err != nil {
		b.t.Error(err)
	}
}

// run starts Envoy, and waits until it has bound the addresses.
func (b *envoyBed) run(bootstrap *bootstrapv3.Bootstrap, addresses ...string) {
	b.t.Helper()
	path, err := binaries.Envoy(b.t.Context(), b.t.Output())
	must(b.t, err)
	text, err := protojson.Marshal(bootstrap)
	must(b.t, err)
	file := filepath.Join(b.t.TempDir(), "envoy.json")
	must(b.t, os.WriteFile(file, text, 0o600))
	log := &bytes.Buffer{}                                                                                 // read only after the process has ended
	command := exec.Command(path, "-c", file, "--concurrency", "1", "--disable-hot-restart", "-l", "warn") // #nosec G204 -- the path is Envoy's
	command.Stdout, command.Stderr = log, log
	process, err := controllerproc.Run(command)
	must(b.t, err)
	b.t.Cleanup(func() {
		process.Kill()
		<-process.Exited()
		if b.t.Failed() || log.Len() > 0 {
			b.t.Logf("The log of Envoy:\n%s", log)
		}
	})
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	for _, address := range append(addresses, b.admin) {
		for {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			if err == nil {
				must(b.t, conn.Close())
				break
			}
			select {
			case <-process.Exited():
				b.t.Fatal("Envoy ended")
			case <-ctx.Done():
				b.t.Fatal(err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

// scrape returns what Envoy serves to Prometheus.
func (b *envoyBed) scrape() map[string]*dto.MetricFamily {
	b.t.Helper()
	response, err := http.Get("http://" + b.admin + "/stats/prometheus") //nolint:noctx // on the loopback address
	must(b.t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	must(b.t, errors.Join(err, response.Body.Close()))
	return families
}

// replaceOnce replaces text that must exist once.
func replaceOnce(t *testing.T, text, old, replacement string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q does not exist once", old)
	}
	return strings.Replace(text, old, replacement, 1)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func socketAddress(t *testing.T, address string) *corev3.Address {
	t.Helper()
	host, port, err := net.SplitHostPort(address)
	must(t, err)
	number, err := strconv.ParseUint(port, 10, 16)
	must(t, err)
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(number)},
	}}}
}
