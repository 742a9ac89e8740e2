package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

const (
	accountID = "0123456789abcdef0123456789abcdef"
	apiToken  = "demo-token"
	clusterID = "demo"
)

// demo is the running demo.
type demo struct {
	options
	dir      string // for temporary files
	envoy    string // path to Envoy, or empty without the data plane Envoy
	backends *backends
	stops    []func() error // in the order in which they were started

	control    *cluster.Cluster
	client     client.Client
	node       *node.Node
	zone       zone
	access     *access.Database
	edge       *simulator.Server
	api        string // the simulated API's URL
	secure     string // the address at which the edge serves visitors by https
	controller *controllerproc.Process
}

// start starts everything, and serves the tunnels on the listener.
func (d *demo) start(ctx context.Context, tunnels net.Listener) error {
	if path, err := findEnvoy(ctx); err == nil {
		d.envoy = path
	} else {
		printStep("continuing without the data plane Envoy: %v", err)
	}
	printStep("starting kube-apiserver and etcd with the CRDs of the Gateway API")
	if err := d.startControlPlane(ctx); err != nil {
		return err
	}
	connectors, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	xds, err := freeAddress()
	if err != nil {
		return err
	}
	printStep("starting a node that runs the pods of connectors as processes")
	if err := d.startNode(ctx, connectors.Addr().String(), xds); err != nil {
		return err
	}
	printStep("starting the Cloudflare simulator")
	if err := d.startEdge(tunnels, connectors); err != nil {
		return err
	}
	printStep("applying the controller's permissions from %s and starting %s controller", d.rbac, d.options.controller)
	return d.startController(ctx, xds)
}

// stop stops everything in reverse order. Errors do not matter at the end of the demo.
func (d *demo) stop() {
	for i := len(d.stops) - 1; i >= 0; i-- {
		_ = d.stops[i]()
	}
	d.backends.close()
}

func (d *demo) startControlPlane(ctx context.Context) (err error) {
	d.control, err = cluster.Start(ctx, cluster.Options{Progress: os.Stderr, WithoutControllers: true, ServiceCIDR: serviceCIDR})
	if err != nil {
		return err
	}
	d.stops = append(d.stops, d.control.Stop)
	if err := d.control.Kubeconfig(d.kubeconfig()); err != nil {
		return err
	}
	scheme := manifest.Scheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		return err
	}
	d.client, err = client.New(d.control.Config, client.Options{Scheme: scheme})
	return err
}

// startNode starts the node, the replacement for the Kubernetes controllers, and the
// backends.
func (d *demo) startNode(ctx context.Context, connectors, xds string) error {
	images, err := d.nodeImages(connectors, xds)
	if err != nil {
		return err
	}
	if d.node, err = node.Start(ctx, d.control.Config, node.Options{Images: images}); err != nil {
		return err
	}
	d.stops = append(d.stops, d.node.Stop)
	api, err := discovery.NewDiscoveryClientForConfig(d.control.Config)
	if err != nil {
		return err
	}
	d.background(ctx, (&workloads{kube: d.client, namespace: cluster.ControllerNamespace}).run)
	d.background(ctx, func(ctx context.Context) {
		repeat(ctx, time.Second, (&namespaces{kube: d.client, discovery: api}).removeDeleted)
	})
	d.background(ctx, func(ctx context.Context) { repeat(ctx, time.Second, endpoints{d.client}.reconcile) })
	if d.envoy != "" {
		d.background(ctx, func(ctx context.Context) { d.backends.follow(ctx, d.client) })
	}
	return nil
}

// background runs the function until the demo stops.
func (d *demo) background(ctx context.Context, do func(context.Context)) {
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		do(running)
	}()
	d.stops = append(d.stops, func() error {
		cancel()
		<-done
		return nil
	})
}

// startEdge starts the simulator. It serves the hostnames that have a record in the zone, by
// http and https, the edge for connectors, and the API.
func (d *demo) startEdge(tunnels, connectors net.Listener) error {
	d.zone, d.access = newZone(), newApplications()
	d.edge = simulator.New(simulator.Options{
		Dial: d.backends.dial, DialConnector: d.dialConnector, AccountID: accountID, Token: apiToken,
		Zones: d.zone.database, Access: d.access,
	})
	api, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	secure, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.secure = secure.Addr().String()
	d.edge.ListenVisitors(secure)
	if err := os.WriteFile(d.authority(), d.edge.VisitorCAPEM(), 0o600); err != nil {
		return err
	}
	d.api = "http://" + api.Addr().String() + "/client/v4"
	for listener, handler := range map[net.Listener]http.Handler{tunnels: d.edge.Visitors(), connectors: d.edge.Edge(), api: d.edge.API()} {
		protocols := &http.Protocols{}
		protocols.SetHTTP1(true)
		protocols.SetUnencryptedHTTP2(true)
		server := &http.Server{Handler: handler, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second}
		go server.Serve(listener) //nolint:errcheck // it serves until the process ends
	}
	d.stops = append(d.stops, func() error {
		d.edge.Close()
		return nil
	})
	return nil
}

// dialConnector connects to a loopback address in a connector pod.
func (d *demo) dialConnector(ctx context.Context, connector, _, address string) (net.Conn, error) {
	return d.node.DialLoopback(ctx, types.NamespacedName{Namespace: cluster.ControllerNamespace, Name: connector}, address)
}

// startController starts the controller binary, which serves xDS on the address.
func (d *demo) startController(ctx context.Context, xds string) error {
	identity := filepath.Join(d.dir, "identity")
	if _, err := cluster.ControllerIdentity(ctx, d.control.Config, d.rbac, identity); err != nil {
		return err
	}
	out, err := os.Create(d.log())
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // only the controller writes to the file
	d.controller, err = controllerproc.Start(controllerproc.Options{
		Binary: d.options.controller, Kubeconfig: identity, ControllerNamespace: cluster.ControllerNamespace, ClusterID: clusterID,
		Cloudflare: d.api, AccountID: accountID, Token: apiToken,
		Flags: []string{"--leader-election=true", "--log-format=console", "--xds-bind-address=" + xds}, Output: out,
	})
	if err != nil {
		return fmt.Errorf("start the controller, which make build builds: %w", err)
	}
	d.stops = append(d.stops, d.controller.Stop)
	return nil
}

// freeAddress returns an address on which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
