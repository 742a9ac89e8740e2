package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/test/binaries"
)

// ServiceCIDR is the default range for ClusterIPs. In a network namespace that package
// netns creates, its addresses belong to the machine.
const ServiceCIDR = "10.96.0.0/12"

// maxWait is the time for which each program may start or stop, and the CRDs may be installed. It
// only ends a wait that would never end: how long a program takes depends on how busy the machine is.
const maxWait = 2 * time.Minute

// Options configures a cluster. The zero value installs all CRDs and reports no
// progress.
type Options struct {
	// Progress receives progress messages while the programs are searched, downloaded
	// and built.
	Progress io.Writer
	// WithoutControllers starts no kube-controller-manager, so that it need not be built.
	// Deployments then create no Pods, Services get no EndpointSlices, no owned object is
	// deleted with its owner, and deleted namespaces remain.
	WithoutControllers bool
	// ServiceCIDR is the range for ClusterIPs. It defaults to [ServiceCIDR]. A range in
	// 127.0.0.0/8 is valid; on Linux, all its addresses belong to the machine.
	ServiceCIDR string
	// APIServer changes the API server before it starts, for example its flags.
	APIServer func(*envtest.APIServer)
	// CRDs returns the CRDs to install. It gets the default CRDs, which are
	// installed if it is nil.
	CRDs func(defaults []*apiextensionsv1.CustomResourceDefinition) []*apiextensionsv1.CustomResourceDefinition
}

// Cluster is a running control plane with this project's CRDs and the Gateway API CRDs in
// the standard channel. The Kubernetes controllers run: Deployments create Pods, Services
// get EndpointSlices, and namespaces get their ServiceAccount. The garbage collector
// deletes objects without an owner, and a deleted namespace's objects. This takes less
// than a second, or five seconds for a namespace. The garbage collector needs up to 30
// seconds to find a CRD that is created later.
//
// The cluster has no Nodes, no scheduler and no volumes. A Pod stays pending unless
// package node runs it or a test updates its status. Such a test must also create the
// Node, because EndpointSlices omit a Pod if its Node does not exist. The Node needs no
// lease.
type Cluster struct {
	// Config connects as a member of the group system:masters.
	Config *rest.Config

	environment       *envtest.Environment
	controllerManager *controllerManager // nil unless it is started
	workspace         *workspace
}

// Start starts a cluster with the programs from [binaries.ControlPlane]. It returns when
// the API server serves the CRDs and the controllers work, which takes a few seconds if
// no program has to be downloaded or built. Canceling ctx stops Start but not a cluster
// that it has returned; the caller stops the cluster. If the calling process ends for any
// reason, the cluster's processes are killed and its files are removed.
//
// The processes' output is discarded unless the environment variable
// KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT is true. The processes do not belong to the
// caller's process group, so Ctrl-C in a terminal signals only the caller.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	progress := options.Progress
	if progress == nil {
		progress = io.Discard
	}
	names := []string{binaries.APIServer, binaries.Etcd}
	if !options.WithoutControllers {
		names = append(names, binaries.ControllerManager)
	}
	programs, err := binaries.ControlPlane(ctx, progress, names...)
	if err != nil {
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	crds, err := manifest.CRDs()
	if err != nil {
		return nil, err
	}
	if options.CRDs != nil {
		crds = options.CRDs(crds)
	}
	workspace, err := newWorkspace(programs)
	if err != nil {
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	existing := false
	environment := &envtest.Environment{
		CRDs: crds, UseExistingCluster: &existing, CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: maxWait},
		ControlPlaneStartTimeout: maxWait, ControlPlaneStopTimeout: maxWait,
	}
	environment.ControlPlane.APIServer = &envtest.APIServer{
		Path: workspace.programs[binaries.APIServer], CertDir: workspace.certificates(),
	}
	environment.ControlPlane.APIServer.Configure().
		Set("service-cluster-ip-range", cmp.Or(options.ServiceCIDR, ServiceCIDR)).
		// Otherwise, the API server would look for its own address, which a machine
		// without a route to other networks does not have. For the Service "kubernetes",
		// the address cannot be a loopback address.
		Set("advertise-address", "127.0.0.1").Set("endpoint-reconciler-type", "none")
	if !options.WithoutControllers {
		// envtest disables the admission plugin ServiceAccount, because without the
		// controllers no ServiceAccount exists.
		environment.ControlPlane.APIServer.Configure().Disable("disable-admission-plugins")
	}
	environment.ControlPlane.Etcd = &envtest.Etcd{Path: workspace.programs[binaries.Etcd], DataDir: workspace.data()}
	if options.APIServer != nil {
		options.APIServer(environment.ControlPlane.APIServer)
	}
	c := &Cluster{environment: environment, workspace: workspace}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), c.Stop())
	}
	return c, nil
}

// start starts the processes. The controllers start last, so that they find all
// CRDs immediately.
func (c *Cluster) start(ctx context.Context) (err error) {
	if c.Config, err = c.environment.Start(); err != nil {
		return err
	}
	if c.workspace.programs[binaries.ControllerManager] == "" {
		return nil
	}
	if c.controllerManager, err = startControllerManager(c.environment, c.workspace); err != nil {
		return fmt.Errorf("%s: %w", binaries.ControllerManager, err)
	}
	if err := c.controllerManager.wait(ctx, c.Config); err != nil {
		return fmt.Errorf("%s: %w", binaries.ControllerManager, err)
	}
	return nil
}

// Kubeconfig writes a kubeconfig to path, with the same credentials as
// [Cluster.Config]. Only the user can read the file.
func (c *Cluster) Kubeconfig(path string) error {
	if err := os.WriteFile(path, c.environment.KubeConfig, 0o600); err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// Stop stops the processes, waits for them, and removes their files.
func (c *Cluster) Stop() error {
	var errs []error
	if c.controllerManager != nil { // the controllers stop first because they need the API server
		if err := c.controllerManager.stop(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", binaries.ControllerManager, err))
		}
	}
	errs = append(errs, c.environment.Stop(), c.workspace.children.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop the control plane: %w", err)
	}
	return nil
}
