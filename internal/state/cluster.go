package state

import (
	"context"
	"fmt"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// Cluster is a cluster that is read once and never changed.
type Cluster struct {
	// Live reads the types in [manifest.Scheme] and CRD metadata from the API server.
	Live           client.Reader
	ControllerName gatewayv1.GatewayController
	// ControllerNamespace is the namespace that contains the Tunnels.
	ControllerNamespace string
	// Progress is called before a kind is read. The returned function is called after
	// the kind was read. Progress can be nil.
	Progress func(name string) (done func())
	// PermitGaps lets FromCluster return a Source with [Source.Gaps] for a user who may not
	// read everything. FromCluster then lists the Namespaces one by one.
	PermitGaps bool
	// Namespaces are the namespaces that the user works in.
	Namespaces []string
}

// Connect returns a client for a Cluster. It makes no requests. In particular, it does
// not discover the served kinds, because a context cannot cancel that.
func Connect(c *rest.Config) (client.WithWatch, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds.Select(func(k kinds.Kind) bool { return k.Plan != kinds.Never }) {
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if k.ClusterScoped {
			scope = meta.RESTScopeRoot
		}
		for _, gvk := range k.GVKs() {
			resource := gvk.GroupVersion().WithResource(k.Resource().Resource)
			mapper.AddSpecific(gvk, resource, resource, scope)
		}
	}
	addUnsupportedKinds(mapper)
	live, err := client.NewWithWatch(c, client.Options{Scheme: manifest.Scheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return live, nil
}

// FromCluster reads the objects that a plan for the cluster requires. It adds the
// objects from manifests as if they had been applied; see [overlay]. The returned
// Source reads Secrets, ConfigMaps and EndpointSlices from the cluster on demand.
//
// The error names all kinds that are missing, and, unless the Cluster permits gaps, that
// the user cannot list.
func FromCluster(ctx context.Context, c Cluster, set *manifest.Set) (*Source, error) {
	set = withoutTunnels(set)
	r, err := c.read(ctx, set)
	if err != nil {
		return nil, err
	}
	unchanged := slices.Clone(r.objects)
	source, err := newClusterSource(c.Live, c.ControllerName, r.servesImports, overlay(r.objects, set.Objects), set)
	if err != nil {
		return nil, err
	}
	source.unchanged, source.live, source.controller, source.servesImports = unchanged, c.Live, c.ControllerName, r.servesImports
	source.recordGaps(r)
	source.readPoliciesOf(r.readsPolicies)
	unsupported, err := r.listUnsupported(ctx)
	source.Unsupported = newUnsupported(unsupported, set.Unsupported)
	return source, err
}

// newClusterSource returns a source with the objects. It reads Secrets, ConfigMaps and
// EndpointSlices from live.
func newClusterSource(live client.Reader, controller gatewayv1.GatewayController, servesImports bool, objects []client.Object, set *manifest.Set) (*Source, error) {
	memory, err := NewMemory(append(slices.Clone(objects), missingNamespaces(objects)...), Indexes(controller))
	if err != nil {
		return nil, err
	}
	source := newSource(&liveReader{
		Memory: memory, live: live, noServiceImports: !servesImports, endpointSlices: map[string]map[indexed][]discoveryv1.EndpointSlice{},
	}, objects, set)
	source.Live = true
	return source, nil
}

// GatewayNames names the Gateways that the controller manages.
func (c Cluster) GatewayNames(ctx context.Context) ([]types.NamespacedName, error) {
	classes, err := c.list(ctx, kinds.GatewayClass)
	if err != nil {
		return nil, err
	}
	all, err := c.list(ctx, kinds.Gateway)
	if err != nil {
		return nil, err
	}
	managed := map[string]bool{}
	for _, class := range classes {
		managed[class.GetName()] = class.(*gatewayv1.GatewayClass).Spec.ControllerName == c.ControllerName
	}
	var names []types.NamespacedName
	for _, object := range all {
		if managed[string(object.(*gatewayv1.Gateway).Spec.GatewayClassName)] {
			names = append(names, client.ObjectKeyFromObject(object))
		}
	}
	return names, nil
}

// list lists all objects of a kind, page by page.
func (c Cluster) list(ctx context.Context, kind kinds.Kind) ([]client.Object, error) {
	return c.listIn(ctx, kind, c.scopeOf(kind))
}

// scopeOf returns the only namespace in which the kind is read, or "" for all.
func (c Cluster) scopeOf(kind kinds.Kind) string {
	if kind.OwnNamespace {
		return c.ControllerNamespace
	}
	return ""
}

// listIn lists the objects of a kind in a namespace, or in all.
func (c Cluster) listIn(ctx context.Context, kind kinds.Kind, namespace string) ([]client.Object, error) {
	if c.Progress != nil {
		defer c.Progress("reading " + kind.Plural + " from the cluster")()
	}
	found, err := c.listPages(ctx, namespace, func() client.ObjectList { return kind.NewList() })
	if err != nil {
		return nil, listError(kind, err)
	}
	return found, nil
}

// listImports lists the ServiceImports of a namespace, or of all, in the newest version that
// the cluster serves. It returns false if the cluster serves none.
func (c Cluster) listImports(ctx context.Context, namespace string) (all []client.Object, served bool, err error) {
	if c.Progress != nil {
		defer c.Progress("reading " + kinds.ServiceImport.Plural + " from the cluster")()
	}
	for _, gvk := range kinds.ServiceImport.GVKs() {
		found, err := c.listPages(ctx, namespace, func() client.ObjectList {
			page := &unstructured.UnstructuredList{}
			page.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			return page
		})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, false, listError(kinds.ServiceImport, err)
		}
		for _, object := range found {
			all = append(all, multicluster.FromUnstructured(object.(*unstructured.Unstructured).Object))
		}
		return all, true, nil
	}
	return nil, false, nil
}

// listPages lists objects page by page.
func (c Cluster) listPages(ctx context.Context, namespace string, newList func() client.ObjectList) ([]client.Object, error) {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page := newList()
		return page, c.Live.List(ctx, page, &client.ListOptions{Namespace: namespace, Limit: o.Limit, Continue: o.Continue})
	})
	list, _, err := pages.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var found []client.Object
	err = meta.EachListItem(list, func(o runtime.Object) error {
		found = append(found, o.(client.Object))
		return nil
	})
	return found, err
}

// listError adds the kind, and the likely cause if the error is NotFound.
func listError(kind kinds.Kind, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the cluster has no %s: the CRD %s is missing or too old: %w", kind.Plural, kind.Resource(), err)
	default:
		return fmt.Errorf("read %s from the cluster: %w", kind.Plural, err)
	}
}
