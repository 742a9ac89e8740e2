package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster/node"
	"github.com/tunnel-gateway/tunnel-gateway/test/controllerproc"
)

// bed is everything that runs on this machine: a control plane, the controller, a node
// with the connectors, and the backends.
type bed struct {
	*place
	prefix  string // the run's cluster ID
	kube    client.Client
	dir     string            // for temporary files
	log     string            // path to the controller's log
	pods    map[string][]*pod // by Service
	servers []func() error
}

// startBed starts everything but the controller's objects. The caller stops the bed, also
// after an error.
func startBed(ctx context.Context, p *place, o options, prefix string) (*bed, error) {
	b := &bed{place: p, prefix: prefix, log: logPath(o, prefix), pods: map[string][]*pod{}}
	dir, err := os.MkdirTemp("", "tunnel-gateway-e2e-")
	if err != nil {
		return b, err
	}
	b.dir = dir
	b.servers = append(b.servers, func() error { return os.RemoveAll(dir) })
	envoy, err := binaries.Envoy(ctx, o.progress)
	if err != nil {
		return b, err
	}
	control, err := cluster.Start(ctx, cluster.Options{Progress: o.progress})
	if err != nil {
		return b, err
	}
	b.servers = append(b.servers, control.Stop)
	scheme := manifest.Scheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		return b, err
	}
	if b.kube, err = client.New(control.Config, client.Options{Scheme: scheme}); err != nil {
		return b, err
	}
	xds, err := freeAddress()
	if err != nil {
		return b, err
	}
	images, err := p.images(o.programs, dir, envoy, xds, control.Config.CAData)
	if err != nil {
		return b, err
	}
	if p.node, err = node.Start(ctx, control.Config, node.Options{Images: images}); err != nil {
		return b, err
	}
	b.servers = append(b.servers, p.node.Stop)
	identity := filepath.Join(dir, "identity")
	if _, err := cluster.ControllerIdentity(ctx, control.Config, o.rbac, identity); err != nil {
		return b, err
	}
	return b, b.startController(o.controller, identity, xds)
}

// logPath returns the path to the controller's log.
func logPath(o options, prefix string) string {
	return filepath.Join(o.logs, "tunnel-gateway-"+prefix+".log")
}

// startController starts the controller, which serves xDS on the address.
func (b *bed) startController(binary, kubeconfig, xds string) error {
	out, err := os.Create(b.log)
	if err != nil {
		return err
	}
	defer out.Close() //nolint:errcheck // only the controller writes to the file
	controller, err := controllerproc.Start(controllerproc.Options{
		Binary: binary, Kubeconfig: kubeconfig, ControllerNamespace: cluster.ControllerNamespace, ClusterID: b.prefix,
		Cloudflare: b.api, AccountID: b.id, Token: b.token, Output: out,
		Flags: []string{"--xds-bind-address=" + xds, "--retirement-delay=" + retirementDelay.String()},
	})
	if err != nil {
		return fmt.Errorf("start the controller: %w", err)
	}
	b.servers = append(b.servers, controller.Stop)
	return nil
}

// retirementDelay is short, so that a Gateway's removal does not take long.
const retirementDelay = 2 * time.Second

// stop stops everything on this machine, in reverse order.
func (b *bed) stop() error {
	var errs []error
	for i := len(b.servers) - 1; i >= 0; i-- {
		errs = append(errs, b.servers[i]())
	}
	b.servers = nil
	return errors.Join(errs...)
}

// freeAddress returns an address on which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
