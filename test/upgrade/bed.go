package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/images"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/access"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/zones"
	"github.com/tunnel-gateway/tunnel-gateway/test/load"
)

const (
	// release is the Helm release's name and namespace.
	release   = "tunnel-gateway"
	account   = "0123456789abcdef0123456789abcdef"
	apiToken  = "api-token"
	teamName  = "acme"
	policyID  = "5f0c1d9e-employees"
	xdsPort   = 18000
	backendOn = 80
)

// bed is everything except the controllers, which Helm installs.
type bed struct {
	dir         string // with the programs and temporary files
	envoy       string // Envoy's path
	helmProgram string
	stops       []func() error // in the order in which they were started

	control      *cluster.Cluster
	kube         client.Client
	node         *node.Node
	edge         *simulator.Server
	applications *access.Database
	api          string // the simulated API's URL
	connectors   string // the edge's URL for connectors
}

// start starts the control plane, the edge, the backends and the relay for Envoys. The caller
// stops the bed even after an error.
func (b *bed) start(ctx context.Context) (err error) {
	printStep("starting kube-apiserver, etcd and kube-controller-manager")
	b.control, err = cluster.Start(ctx, cluster.Options{Progress: os.Stderr, CRDs: gatewayAPICRDs})
	if err != nil {
		return err
	}
	b.stops = append(b.stops, b.control.Stop)
	if err := b.control.Kubeconfig(b.kubeconfig()); err != nil {
		return err
	}
	scheme := manifest.Scheme()
	if err := errors.Join(appsv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme)); err != nil {
		return err
	}
	config := *b.control.Config
	config.QPS = -1 // no rate limit
	if b.kube, err = client.New(&config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := b.startEdge(); err != nil {
		return err
	}
	if err := b.listen(fmt.Sprintf("0.0.0.0:%d", backendOn), load.Backend()); err != nil {
		return err
	}
	return b.relay()
}

func (b *bed) kubeconfig() string { return filepath.Join(b.dir, "admin") }

// gatewayAPICRDs removes the controller's CRDs, which the charts install.
func gatewayAPICRDs(crds []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition {
	var kept []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		if crd.Spec.Group != v1alpha1.GroupName {
			kept = append(kept, crd)
		}
	}
	return kept
}

// startEdge starts the Cloudflare simulator, with a zone and the policy employees.
func (b *bed) startEdge() error {
	database := zones.New(zones.Options{})
	database.Add(zones.Zone{Name: domain, Account: account})
	b.applications = access.New(access.Options{TeamName: teamName})
	b.applications.AddPolicy(account, access.Policy{
		ID: policyID, Name: "employees", Decision: "allow", Include: []json.RawMessage{json.RawMessage(`{"email_domain":{"domain":"example.com"}}`)},
	})
	b.edge = simulator.New(simulator.Options{
		AccountID: account, Token: apiToken, Zones: database, Access: b.applications,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) { // all Services have the same backend
			return (&net.Dialer{}).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", backendOn))
		},
		DialConnector: func(ctx context.Context, connector, _, address string) (net.Conn, error) {
			return b.node.DialLoopback(ctx, types.NamespacedName{Namespace: release, Name: connector}, address)
		},
	})
	b.stops = append(b.stops, func() error {
		b.edge.Close()
		return nil
	})
	for url, handler := range map[*string]http.Handler{&b.api: b.edge.API(), &b.connectors: b.edge.Edge()} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		*url = "http://" + listener.Addr().String()
		b.serve(listener, handler)
	}
	b.api += "/client/v4"
	return nil
}

func (b *bed) listen(address string, handler http.Handler) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	b.serve(listener, handler)
	return nil
}

// serve serves the handler until the bed stops.
func (b *bed) serve(listener net.Listener, handler http.Handler) {
	server := &http.Server{Handler: handler} // #nosec G112 -- all clients are on this machine
	go server.Serve(listener)                //nolint:errcheck // it serves until the bed stops
	b.stops = append(b.stops, server.Close)
}

// relay replaces the cluster DNS for Envoys: it connects each to the release's controllers
// in turn. Only the leader accepts the connection, and the others' Envoys try again.
func (b *bed) relay() error {
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", xdsPort))
	if err != nil {
		return err
	}
	b.stops = append(b.stops, listener.Close)
	go func() {
		for {
			inbound, err := listener.Accept()
			if err != nil {
				return
			}
			go b.connectEnvoy(inbound)
		}
	}()
	return nil
}

func (b *bed) connectEnvoy(inbound net.Conn) {
	defer inbound.Close() //nolint:errcheck // Envoy notices it
	outbound, err := b.node.Dial(context.Background(), "tcp", fmt.Sprintf("%s-xds.%s.svc:%d", release, release, xdsPort))
	if err != nil {
		return
	}
	defer outbound.Close() //nolint:errcheck // the controller notices it
	go func() {
		_, _ = io.Copy(outbound, inbound)
		_ = outbound.Close()
	}()
	_, _ = io.Copy(inbound, outbound)
}

// startNode starts the node. The controllers' ServiceAccount must exist.
func (b *bed) startNode(ctx context.Context) error {
	identity := filepath.Join(b.dir, "identity")
	if _, err := cluster.Identity(ctx, b.control.Config, release, release, identity); err != nil {
		return err
	}
	authorities := filepath.Join(b.dir, "ca.pem") // no backend has TLS
	if err := os.WriteFile(authorities, b.control.Config.CAData, 0o600); err != nil {
		return err
	}
	programs := map[string]node.Image{
		images.Connector: images.StandIn(filepath.Join(b.dir, "connector"), b.connectors),
		images.Envoy: images.Sidecar{
			Program: filepath.Join(b.dir, "envoy"), Envoy: b.envoy, XDS: fmt.Sprintf("127.0.0.1:%d", xdsPort), Authorities: authorities,
			Outbound: []int{xdsPort, backendOn},
		}.Image(),
	}
	for _, version := range []string{earlier, present} {
		programs[repository(version)] = node.Image{
			// Later flags take precedence.
			Command: []string{"/bin/sh", "-c", `exec "$0" "$@" --metrics-address=127.0.0.1:$METRICS_PORT --health-address=127.0.0.1:$HEALTH_PORT ` +
				`--xds-bind-address=127.0.0.1:$XDS_PORT`, program(b.dir, version)},
			Environment: []string{"KUBECONFIG=" + identity},
			Ports:       map[int32]string{8080: "METRICS_PORT", 8081: "HEALTH_PORT", xdsPort: "XDS_PORT"},
		}
	}
	var err error
	if b.node, err = node.Start(ctx, b.control.Config, node.Options{Images: programs}); err != nil {
		return err
	}
	b.stops = append(b.stops, b.node.Stop)
	return nil
}

// helm runs Helm against the cluster.
func (b *bed) helm(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, b.helmProgram, append(arguments, "--namespace", release, "--kubeconfig", b.kubeconfig())...) // #nosec G204 -- Helm
	home := filepath.Join(b.dir, "helm")
	command.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w\n%s", arguments[0], err, output)
	}
	return nil
}

// stop stops everything in reverse order.
func (b *bed) stop() error {
	var errs []error
	for i := len(b.stops) - 1; i >= 0; i-- {
		errs = append(errs, b.stops[i]())
	}
	return errors.Join(errs...)
}

// timeout is long enough for a rollout on a busy machine.
const timeout = 2 * time.Minute
