package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
)

// Options says how a cluster differs from the usual one. The zero value is a
// cluster that says nothing while it is built.
type Options struct {
	// Progress gets a line now and then while binaries are built.
	Progress io.Writer
	// APIServer changes the API server before it starts, for instance its
	// flags through Configure.
	APIServer func(*envtest.APIServer)
}

// Cluster is a running control plane with the Gateway API's CRDs of the
// standard channel and our own. It has no controllers: nothing collects
// garbage, makes endpoints or finishes the deletion of a namespace.
type Cluster struct {
	// Config connects as a member of system:masters.
	Config *rest.Config

	environment *envtest.Environment
	tether      *tether
}

// Start builds the binaries unless they are cached, as [Binaries] does, and
// returns once the API server is ready and knows the CRDs, which takes a few
// seconds. Cancelling ctx ends the build, not the cluster: the caller stops
// that. Should the calling process die instead, whatever the reason, the
// cluster's processes and files go with it.
//
// The processes do not belong to the caller's process group, so that Ctrl-C in
// a terminal reaches the caller alone.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	progress := options.Progress
	if progress == nil {
		progress = io.Discard
	}
	binaries, err := Binaries(ctx, progress)
	if err != nil {
		return nil, err
	}
	crds, err := manifest.CRDs()
	if err != nil {
		return nil, err
	}
	tether, err := newTether(binaries)
	if err != nil {
		return nil, fmt.Errorf("preparing to start the control plane: %w", err)
	}
	existing := false
	environment := &envtest.Environment{CRDs: crds, UseExistingCluster: &existing}
	environment.ControlPlane.APIServer = &envtest.APIServer{
		Path: tether.program("kube-apiserver"), CertDir: tether.certificates(),
	}
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: tether.program("etcd"), DataDir: tether.data()}
	if options.APIServer != nil {
		options.APIServer(environment.ControlPlane.APIServer)
	}
	c := &Cluster{environment: environment, tether: tether}
	if c.Config, err = environment.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	return c, nil
}

// Kubeconfig writes a file for kubectl to path that connects as Config does.
// Only the user can read it.
func (c *Cluster) Kubeconfig(path string) error {
	if err := os.WriteFile(path, c.environment.KubeConfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// Stop ends the processes, waits for them, and removes what they stored.
func (c *Cluster) Stop() error {
	if err := errors.Join(c.environment.Stop(), c.tether.cut()); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}
