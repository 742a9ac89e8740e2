package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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
	// CRDs returns which of the usual CRDs are installed; all of them when nil.
	CRDs func(usual []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition
}

// Cluster is a running control plane with the Gateway API's CRDs of the
// standard channel and our own. Kubernetes' own controllers run: Deployments become Pods,
// Services get EndpointSlices, namespaces their ServiceAccount; what has lost
// its owner is deleted, and so is all that a deleted namespace holds. That
// takes less than a second, but five for a namespace; of a CRD that is made
// later the garbage collector learns within 30 seconds.
//
// There are no Nodes, no scheduler and no volumes: a Pod stays pending unless
// the package node runs it, or its user plays the node. Who does has to make
// the Node too, since EndpointSlices leave out the Pods of an unknown one;
// nobody minds its lease.
type Cluster struct {
	// Config connects as a member of system:masters.
	Config *rest.Config

	environment       *envtest.Environment
	controllerManager *controllerManager // nil until they are started
	workspace         *workspace
}

// Start builds the binaries unless they are cached, as [Binaries] does, and
// returns once the API server knows the CRDs and the controllers work, which
// takes a few seconds. Cancelling ctx ends Start, not the cluster that it has
// returned: the caller stops that. Should the calling process die instead,
// whatever the reason, the cluster's processes and files go with it.
//
// What the processes print is dropped, unless the environment says
// KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true. They do not belong to the
// caller's process group, so that Ctrl-C in a terminal reaches the caller alone.
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
	if options.CRDs != nil {
		crds = options.CRDs(crds)
	}
	workspace, err := newWorkspace(binaries)
	if err != nil {
		return nil, fmt.Errorf("preparing to start the control plane: %w", err)
	}
	existing := false
	environment := &envtest.Environment{CRDs: crds, UseExistingCluster: &existing}
	environment.ControlPlane.APIServer = &envtest.APIServer{
		Path: workspace.programs["kube-apiserver"], CertDir: workspace.certificates(),
	}
	// envtest disables the admission of ServiceAccounts, which nobody would make
	// without the controllers.
	environment.ControlPlane.APIServer.Configure().Disable("disable-admission-plugins")
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: workspace.programs["etcd"], DataDir: workspace.data()}
	if options.APIServer != nil {
		options.APIServer(environment.ControlPlane.APIServer)
	}
	c := &Cluster{environment: environment, workspace: workspace}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	return c, nil
}

// start starts the processes, the controllers last: they find every CRD there
// is, and do not have to learn of it later.
func (c *Cluster) start(ctx context.Context) (err error) {
	if c.Config, err = c.environment.Start(); err != nil {
		return err
	}
	if c.controllerManager, err = startControllerManager(c.environment, c.workspace); err != nil {
		return fmt.Errorf("%s: %w", controllerManagerName, err)
	}
	if err := c.controllerManager.wait(ctx, c.Config); err != nil {
		return fmt.Errorf("%s: %w", controllerManagerName, err)
	}
	return nil
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
	var errs []error
	if c.controllerManager != nil { // before the API server, which they would miss
		if err := c.controllerManager.stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", controllerManagerName, err))
		}
	}
	errs = append(errs, c.environment.Stop(), c.workspace.children.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}
