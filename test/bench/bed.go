package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/images"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	clusterID = "bench"
	// xdsAddress and metricsAddress are the controller's addresses.
	xdsAddress     = "127.0.0.1:18000"
	metricsAddress = "127.0.0.1:18001"
)

// bedOptions selects what a bed serves.
type bedOptions struct {
	dataPlane v1alpha1.DataPlane
	hostnames int
	programs  string // the directory with the programs
	envoy     string // the path to Envoy
	// cloudflared is the path to the real connector, or empty for the stand-in.
	cloudflared string
}

// bed is everything that one measurement needs. Its visitors send requests to address.
type bed struct {
	bedOptions
	dir       string         // for temporary files
	stops     []func() error // in the order in which they were started
	kube      client.Client
	node      *node.Node
	edge      *simulator.Server
	real      *cloudflaredEdge  // nil with the stand-in
	addresses map[string]string // ClusterIP by the Service's DNS name
	forwards  []int             // Service by route
	address   string
}

// startBed starts everything and returns when every hostname is served and the controller
// is idle. The caller stops the bed even after an error.
func startBed(ctx context.Context, o bedOptions) (*bed, error) {
	b := &bed{bedOptions: o, addresses: map[string]string{}}
	dir, err := os.MkdirTemp("", "tunnel-gateway-bench-")
	if err != nil {
		return b, err
	}
	b.dir = dir
	b.stops = append(b.stops, func() error { return os.RemoveAll(dir) })
	control, err := cluster.Start(ctx, cluster.Options{Progress: os.Stderr})
	if err != nil {
		return b, err
	}
	b.stops = append(b.stops, control.Stop)
	config := *control.Config
	config.QPS = -1 // no rate limit
	if b.kube, err = client.New(&config, client.Options{Scheme: manifest.Scheme()}); err != nil {
		return b, err
	}
	identity := filepath.Join(dir, "identity")
	if _, err := cluster.ControllerIdentity(ctx, control.Config, "../../config/rbac", identity); err != nil {
		return b, err
	}
	api, err := b.startServers(ctx, control.Config)
	if err != nil {
		return b, err
	}
	if err := b.startController(identity, api); err != nil {
		return b, err
	}
	return b, b.waitUntilIdle(ctx)
}

// startServers starts everything but the controller, and creates the objects. It returns
// the Cloudflare API's URL.
func (b *bed) startServers(ctx context.Context, config *rest.Config) (api string, err error) {
	if err := b.startBackends(); err != nil {
		return "", err
	}
	api, connectors, err := b.startEdge()
	if err != nil {
		return "", err
	}
	authorities := filepath.Join(b.dir, "ca.pem") // no backend has TLS
	if err := os.WriteFile(authorities, config.CAData, 0o600); err != nil {
		return "", err
	}
	images, err := b.images(connectors, authorities)
	if err != nil {
		return "", err
	}
	if b.node, err = node.Start(ctx, config, node.Options{Images: images}); err != nil {
		return "", err
	}
	b.stops = append(b.stops, b.node.Stop)
	if err := b.createObjects(ctx); err != nil {
		return "", err
	}
	if b.real != nil {
		b.real.resolve = resolver(b.addresses)
		go b.real.serve()
	}
	return api, nil
}

// stop stops everything in reverse order.
func (b *bed) stop() error {
	var errs []error
	for i := len(b.stops) - 1; i >= 0; i-- {
		errs = append(errs, b.stops[i]())
	}
	return errors.Join(errs...)
}

// images returns the programs that replace the images in the connector pod.
func (b *bed) images(connectors, authorities string) (map[string]node.Image, error) {
	sidecar := images.Sidecar{
		Program: filepath.Join(b.programs, "envoy"), Envoy: b.envoy, XDS: xdsAddress, Authorities: authorities, FixedPorts: b.real != nil,
	}
	connector := images.StandIn(filepath.Join(b.programs, "connector"), connectors)
	if b.real != nil {
		var err error
		connector, err = images.Cloudflared(b.dir, b.cloudflared, "TUNNEL_EDGE="+connectors, "TUNNEL_CACERT="+b.real.authority)
		if err != nil {
			return nil, err
		}
	}
	return map[string]node.Image{images.Connector: connector, images.Envoy: sidecar.Image()}, nil
}

// startBackends starts one server for port 80 on all Services. It responds with the
// Service's address.
func (b *bed) startBackends() error {
	listener, err := net.Listen("tcp", "0.0.0.0:80") // #nosec G102 -- in a network namespace
	if err != nil {
		return err
	}
	b.serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Context().Value(http.LocalAddrContextKey).(net.Addr).String())
		fmt.Fprint(w, host) // #nosec G705 -- an address
	}))
	return nil
}

// startEdge starts the Cloudflare simulator, and returns its API's URL and the edge
// address for the connector.
func (b *bed) startEdge() (api, connectors string, err error) {
	b.edge = simulator.New(simulator.Options{Dial: b.dial, DialConnector: b.dialConnector})
	b.stops = append(b.stops, func() error {
		b.edge.Close()
		return nil
	})
	visitors := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.edge.Tunnel(b.tunnel()).ServeHTTP(w, r) }))
	if b.cloudflared != "" {
		if b.real, err = startCloudflaredEdge(b.dir); err != nil {
			return "", "", err
		}
		b.stops = append(b.stops, b.real.listener.Close)
		b.real.simulator, b.real.tunnel = b.edge, b.tunnel
		visitors = b.real.handler()
	}
	var addresses []string
	for _, handler := range []http.Handler{b.edge.API(), b.edge.Edge(), visitors} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		b.serve(listener, handler)
		addresses = append(addresses, listener.Addr().String())
	}
	b.address, connectors = addresses[2], "http://"+addresses[1]
	if b.real != nil {
		connectors = b.real.listener.Addr().String()
	}
	return "http://" + addresses[0] + "/client/v4", connectors, nil
}

// tunnel returns the tunnel's ID, or an empty text if the tunnel does not exist.
func (b *bed) tunnel() string {
	id, _ := b.edge.TunnelID(tunnel.RemoteName(clusterID, gatewayKey))
	return id
}

// serve serves the handler until the bed stops.
func (b *bed) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler} // #nosec G112 -- all clients are on this machine
	go server.Serve(listener)                //nolint:errcheck // it serves until the bed stops
	b.stops = append(b.stops, server.Close)
}

// dial connects to a Service, as its DNS name would.
func (b *bed) dial(ctx context.Context, network, address string) (net.Conn, error) {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ip, ok := b.addresses[name]
	if !ok {
		return nil, fmt.Errorf("the Service %s does not exist", name)
	}
	return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort(ip, "80"))
}

// dialConnector connects to a loopback address in a connector pod.
func (b *bed) dialConnector(ctx context.Context, connector, _, address string) (net.Conn, error) {
	return b.node.DialLoopback(ctx, types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: connector}, address)
}

// startController starts the controller.
func (b *bed) startController(identity, api string) error {
	out, err := os.Create(filepath.Join(b.dir, "controller.log")) // #nosec G304 -- a temporary file
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // only the controller writes to the file
	controller, err := controllerproc.Start(controllerproc.Options{
		Binary: filepath.Join(b.programs, "tunnel-gateway"), Kubeconfig: identity, ControllerNamespace: cluster.ControllerNamespace,
		ClusterID: clusterID, Cloudflare: api, Output: out,
		Flags: []string{"--xds-bind-address=" + xdsAddress, "--metrics-address=" + metricsAddress, "--pprof"},
	})
	if err != nil {
		return err
	}
	b.stops = append(b.stops, controller.Stop)
	return nil
}
