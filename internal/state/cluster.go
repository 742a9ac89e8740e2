package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
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
		resource := k.GVK().GroupVersion().WithResource(k.Resource().Resource)
		mapper.AddSpecific(k.GVK(), resource, resource, scope)
	}
	live, err := client.NewWithWatch(c, client.Options{Scheme: manifest.Scheme(), Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return live, nil
}

// FromCluster reads the objects that a plan for the cluster requires. It adds the
// objects from manifests as if they had been applied; see [overlay]. The returned
// Source reads Secrets and EndpointSlices from the cluster on demand.
//
// The error names all kinds that are missing or that the user cannot list.
func FromCluster(ctx context.Context, c Cluster, set *manifest.Set) (*Source, error) {
	listed, err := c.listAll(ctx)
	if err != nil {
		return nil, err
	}
	set = withoutTunnels(set)
	unchanged := slices.Clone(listed)
	source, err := newClusterSource(c.Live, c.ControllerName, overlay(listed, set.Objects), set)
	if err != nil {
		return nil, err
	}
	source.unchanged, source.live, source.controller = unchanged, c.Live, c.ControllerName
	return source, nil
}

// newClusterSource returns a source with the objects. It reads Secrets and
// EndpointSlices from live.
func newClusterSource(live client.Reader, controller gatewayv1.GatewayController, objects []client.Object, set *manifest.Set) (*Source, error) {
	memory, err := NewMemory(append(slices.Clone(objects), missingNamespaces(objects)...), Indexes(controller))
	if err != nil {
		return nil, err
	}
	source := newSource(&liveReader{Memory: memory, live: live, endpointSlices: map[string]map[string][]discoveryv1.EndpointSlice{}}, objects, set)
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

// listAll lists every listed kind. It continues after a missing kind or permission, so
// that the error names all of them.
func (c Cluster) listAll(ctx context.Context) ([]client.Object, error) {
	var all []client.Object
	var errs []error
	var forbidden []string
	user := ""
	for _, kind := range kinds.Select(func(k kinds.Kind) bool { return k.Plan == kinds.Listed }) {
		found, err := c.list(ctx, kind)
		switch {
		case err == nil:
			all = append(all, found...)
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, kind.Resource().String())
			user = cmp.Or(user, refusedUser(err))
		case apierrors.IsNotFound(err):
			errs = append(errs, err)
		default:
			return nil, err
		}
	}
	if len(forbidden) > 0 {
		errs = append(errs, fmt.Errorf("%s cannot list: %s; docs/plan.md contains the required role", user, strings.Join(forbidden, ", ")))
	}
	return all, errors.Join(errs...)
}

// forbiddenUser matches the user in the API server's Forbidden error.
var forbiddenUser = regexp.MustCompile(`User "[^"]*"`)

// refusedUser returns the user whose request the API server rejected.
func refusedUser(err error) string {
	if user := forbiddenUser.FindString(err.Error()); user != "" {
		return "u" + user[1:]
	}
	return "the user of the kubeconfig"
}

// list lists all objects of a kind, page by page.
func (c Cluster) list(ctx context.Context, kind kinds.Kind) ([]client.Object, error) {
	if c.Progress != nil {
		defer c.Progress("reading " + kind.Plural + " from the cluster")()
	}
	namespace := ""
	if kind.OwnNamespace {
		namespace = c.ControllerNamespace
	}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		page := kind.NewList()
		return page, c.Live.List(ctx, page, &client.ListOptions{Namespace: namespace, Limit: o.Limit, Continue: o.Continue})
	})
	list, _, err := pages.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, listError(kind, err)
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

// liveReader reads Secrets and EndpointSlices from manifests and the API server, and all
// other objects from memory.
type liveReader struct {
	*Memory
	live client.Reader
	// endpointSlices are the EndpointSlices in the cluster, by namespace and then by
	// Service. A plan needs those of most Services in a namespace, so that one request for
	// each namespace is faster than one for each Service.
	endpointSlices map[string]map[string][]discoveryv1.EndpointSlice
}

// Get implements client.Reader.
func (r *liveReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := r.Memory.Get(ctx, key, object, opts...)
	if _, secret := object.(*corev1.Secret); secret && apierrors.IsNotFound(err) {
		return r.live.Get(ctx, key, object, opts...)
	}
	return err
}

// List implements client.Reader. EndpointSlices can be selected only by [IndexService].
func (r *liveReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	endpointSlices, ok := list.(*discoveryv1.EndpointSliceList)
	if !ok {
		return r.Memory.List(ctx, list, opts...)
	}
	found, err := r.listEndpointSlices(ctx, opts)
	if err != nil {
		return err
	}
	if err := r.Memory.List(ctx, endpointSlices, opts...); err != nil {
		return err
	}
	for i := range found {
		// An EndpointSlice from a manifest replaces the one in the cluster, even if its
		// labels do not match.
		err := r.Memory.Get(ctx, client.ObjectKeyFromObject(&found[i]), &discoveryv1.EndpointSlice{})
		if apierrors.IsNotFound(err) {
			endpointSlices.Items = append(endpointSlices.Items, found[i])
		}
	}
	return nil
}

// errSelection is a bug in the caller of [liveReader.List].
var errSelection = errors.New("EndpointSlices can be selected only by their Service")

// listEndpointSlices returns a Service's EndpointSlices in the cluster.
func (r *liveReader) listEndpointSlices(ctx context.Context, opts []client.ListOption) ([]discoveryv1.EndpointSlice, error) {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.FieldSelector == nil {
		return nil, errSelection
	}
	service, ok := o.FieldSelector.RequiresExactMatch(IndexService)
	if !ok {
		return nil, errSelection
	}
	namespace, name, _ := strings.Cut(service, "/")
	byService, ok := r.endpointSlices[namespace]
	if !ok {
		var found discoveryv1.EndpointSliceList
		if err := r.live.List(ctx, &found, client.InNamespace(namespace), client.HasLabels{discoveryv1.LabelServiceName}); err != nil {
			return nil, fmt.Errorf("list the EndpointSlices of namespace %s: %w", namespace, err)
		}
		byService = map[string][]discoveryv1.EndpointSlice{}
		for i := range found.Items {
			label := found.Items[i].Labels[discoveryv1.LabelServiceName]
			byService[label] = append(byService[label], found.Items[i])
		}
		r.endpointSlices[namespace] = byService
	}
	return byService[name], nil
}
