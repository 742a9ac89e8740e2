package cli

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/controller"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/progress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// sourceReader reads what a plan is made from.
type sourceReader struct {
	*sourceOptions
	manifests     manifest.Options
	readManifests func(manifest.Options) (*manifest.Set, error)
	// live reads the cluster, and connection makes requests to it; nil without a cluster.
	live       client.Reader
	connection client.WithWatch
}

// read reads the cluster and the manifests, as far as the flags select them. It shows the steps
// in line.
func (r *sourceReader) read(ctx context.Context, line *progress.Line) (*state.Source, error) {
	read := r.readCluster
	if r.live == nil {
		read = r.readFiles
	}
	source, err := read(ctx, line)
	if err == nil {
		source.Certificates.AssumeMissing = r.assumeSecrets
	}
	return source, err
}

func (r *sourceReader) readFiles(ctx context.Context, line *progress.Line) (*state.Source, error) {
	set, err := r.readSet(ctx, line, r.manifests)
	if err != nil {
		return nil, err
	}
	return state.FromManifests(set, r.manifests.Experimental, gatewayv1.GatewayController(r.controller), config.DefaultClassName)
}

func (r *sourceReader) readCluster(ctx context.Context, line *progress.Line) (*state.Source, error) {
	done := line.Step("checking the cluster's CRDs")
	crds, crdErr := controller.CheckCRDs(ctx, r.live)
	done()
	manifests := r.manifests
	manifests.Experimental = manifests.Experimental || crds.ExperimentalRoutes
	set, err := r.readSet(ctx, line, manifests)
	if err != nil {
		return nil, err
	}
	// Many users have no permission to read CRDs. Listing the objects fails anyway if
	// a CRD is missing.
	if crdErr != nil && !apierrors.IsForbidden(crdErr) {
		return nil, crdErr
	}
	cluster := r.cluster(line.Step)
	cluster.PermitGaps, cluster.Namespaces = true, []string{manifests.Namespace}
	source, err := state.FromCluster(ctx, cluster, set)
	if err != nil {
		return nil, err
	}
	source.ExperimentalRoutes = manifests.Experimental
	return source, nil
}

// cluster returns the cluster that the flags select. It calls step before each step that
// reads the cluster.
func (r *sourceReader) cluster(step func(string) func()) state.Cluster {
	return state.Cluster{
		Live: r.live, ControllerName: gatewayv1.GatewayController(r.controller), ControllerNamespace: r.controllerNamespace, Progress: step,
	}
}

// readSet reads the manifests and returns them or the context's error.
func (r *sourceReader) readSet(ctx context.Context, line *progress.Line, o manifest.Options) (*manifest.Set, error) {
	defer line.Step("reading the manifests")()
	return readInterruptibly(ctx, func() (*manifest.Set, error) { return r.readManifests(o) })
}

// readInterruptibly returns what read returns, or the context's error. A read from a pipe cannot
// be canceled, so read may continue after the context ends.
func readInterruptibly[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	results := make(chan result, 1)
	go func() {
		value, err := read()
		results <- result{value, err}
	}()
	select {
	case r := <-results:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
