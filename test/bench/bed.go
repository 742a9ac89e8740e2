package main

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// bedOptions selects what a bed serves. They are passed as JSON.
type bedOptions struct {
	DataPlane v1alpha1.DataPlane
	Hostnames int
	// PerRoute is how many hostnames each route has.
	PerRoute int
	Programs string // the directory with the programs
	Envoy    string // the path to Envoy
	// Cloudflared is the path to the real connector, or empty for the stand-in.
	Cloudflared string
}

// maxServices limits the Services. More routes share them.
const maxServices = 5000

func (o bedOptions) routes() int { return (o.Hostnames + o.PerRoute - 1) / o.PerRoute }

func (o bedOptions) services() int { return min(o.routes(), maxServices) }

// bed is everything that one measurement needs. Its visitors send requests to address.
type bed struct {
	bedOptions
	dir        string         // for temporary files
	stops      []func() error // in the order in which they were started
	kube       client.Client
	node       *node.Node
	edge       *simulator.Server
	real       *cloudflaredEdge  // nil with the stand-in
	addresses  map[string]string // ClusterIP by the Service's DNS name
	forwards   []int             // Service by route
	changed    int               // number of changes
	added      int               // number of routes with new hostnames
	address    string
	controller controllerproc.Options
	running    *controllerproc.Process
}

// start starts everything and returns when every hostname is served and the controller is
// idle. The caller stops the bed even after an error.
func (b *bed) start(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "tunnel-gateway-bench-")
	if err != nil {
		return err
	}
	b.dir = dir
	b.stops = append(b.stops, func() error { return os.RemoveAll(dir) })
	control, err := cluster.Start(ctx, cluster.Options{Progress: io.Discard})
	if err != nil {
		return err
	}
	b.stops = append(b.stops, control.Stop)
	config := *control.Config
	config.QPS = -1 // no rate limit
	if b.kube, err = client.New(&config, client.Options{Scheme: manifest.Scheme()}); err != nil {
		return err
	}
	identity := filepath.Join(dir, "identity")
	if _, err := cluster.ControllerIdentity(ctx, control.Config, "../../config/rbac", identity); err != nil {
		return err
	}
	api, err := b.startServers(ctx, control.Config)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(dir, "controller.log")) // #nosec G304 -- a temporary file
	if err != nil {
		return err
	}
	b.stops = append(b.stops, log.Close)
	b.controller = controllerproc.Options{
		Binary: filepath.Join(b.Programs, "tunnel-gateway"), Kubeconfig: identity, ControllerNamespace: cluster.ControllerNamespace,
		ClusterID: clusterID, Cloudflare: api, Output: log,
		Flags: []string{"--xds-bind-address=" + xdsAddress, "--metrics-address=" + metricsAddress, "--pprof"},
	}
	b.stops = append(b.stops, b.stopController)
	if err := b.startController(); err != nil {
		return err
	}
	return b.waitUntilIdle(ctx)
}

func (b *bed) startController() (err error) {
	b.running, err = controllerproc.Start(b.controller)
	return err
}

func (b *bed) stopController() error {
	if b.running == nil {
		return nil
	}
	return b.running.Stop()
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
		Program: filepath.Join(b.Programs, "envoy"), Envoy: b.Envoy, XDS: xdsAddress, Authorities: authorities, FixedPorts: b.real != nil,
	}
	connector := images.StandIn(filepath.Join(b.Programs, "connector"), connectors)
	if b.real != nil {
		var err error
		connector, err = images.Cloudflared(b.dir, b.Cloudflared, "TUNNEL_EDGE="+connectors, "TUNNEL_CACERT="+b.real.authority)
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
	if b.Cloudflared != "" {
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
