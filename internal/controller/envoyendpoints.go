package controller

import (
	"context"
	"errors"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// followed is a Service or ServiceImport to whose pods a Gateway's Envoys connect. Without a
// source, it is all of them, also those in the names of the Envoys' clusters. The zero value is
// everything that any Gateway's Envoys connect to.
type followed struct {
	gateway types.NamespacedName
	source  envoy.EndpointSource
}

// endpointWorkers is how many Services have their endpoints published at the same time.
// A Service with many EndpointSlices must not delay the others.
const endpointWorkers = 8

// setupEndpoints adds a controller that publishes a Service's endpoints when they
// change. It runs beside the Gateway reconciler, whose decisions do not depend on
// endpoints. subscribed has the Gateways whose Envoys subscribe to clusters by their
// names.
func setupEndpoints(m manager.Manager, e *envoys, subscribed chan event.TypedGenericEvent[followed]) error {
	controller := builder.TypedControllerManagedBy[followed](m).
		Named("endpoints").
		WatchesRawSource(atStart(followed{})). // other controllers may have published before this one receives events
		WithOptions(ctrlcontroller.TypedOptions[followed]{MaxConcurrentReconciles: endpointWorkers, RateLimiter: rateLimiter[followed]()}).
		WatchesRawSource(source.TypedChannel(subscribed, handler.TypedFuncs[followed, followed]{GenericFunc: addEvent[followed]}))
	return register(controller, e.watches()).Complete(reconcile.TypedFunc[followed](func(ctx context.Context, f followed) (reconcile.Result, error) {
		return reconcile.Result{}, e.update(ctx, f)
	}))
}

// update publishes what f describes.
func (e *envoys) update(ctx context.Context, f followed) error {
	if f != (followed{}) {
		return errors.Join(e.publishEndpoints(ctx, f), e.publishByName(ctx, f))
	}
	var errs []error
	for _, one := range e.fromConnectorPod(ctx, nil) {
		errs = append(errs, e.update(ctx, one))
	}
	return errors.Join(errs...)
}

// watches returns watches for the kinds that affect endpoints.
func (e *envoys) watches() []watch[followed] {
	return []watch[followed]{
		{kinds.EndpointSlice, handler.TypedEnqueueRequestsFromMapFunc(e.fromEndpointSlice), nil},
		{kinds.Pod, handler.TypedEnqueueRequestsFromMapFunc(e.fromConnectorPod), addressesChanged},
		{kinds.Service, handler.TypedEnqueueRequestsFromMapFunc(e.fromService), serviceChanged},
	}
}

// fromEndpointSlice returns the Gateways whose Envoys connect to the endpoints.
func (e *envoys) fromEndpointSlice(_ context.Context, slice client.Object) []followed {
	var found []followed
	for _, source := range sourcesOf(slice) {
		found = append(found, e.memories.followersOf(source)...)
		found = append(found, e.subscribers(source)...)
	}
	return found
}

// sourcesOf returns the Service and the ServiceImport to which the EndpointSlice belongs.
func sourcesOf(slice client.Object) []envoy.EndpointSource {
	var sources []envoy.EndpointSource
	for _, source := range []struct {
		label    string
		isImport bool
	}{{discoveryv1.LabelServiceName, false}, {multicluster.LabelServiceName, true}} {
		if name := slice.GetLabels()[source.label]; name != "" {
			sources = append(sources, envoy.EndpointSource{NamespacedName: types.NamespacedName{Namespace: slice.GetNamespace(), Name: name}, Import: source.isImport})
		}
	}
	return sources
}

// fromConnectorPod returns all Gateways whose Envoys connect to pods, because Envoys never
// connect to connector addresses. Each Gateway is published once: it can have thousands of
// Services.
func (e *envoys) fromConnectorPod(context.Context, client.Object) []followed {
	return append(e.memories.allFollowers(), e.subscribers(envoy.EndpointSource{})...)
}

// publishEndpoints publishes the current endpoints of a Service, or of all Services, for
// the Envoys behind a Gateway.
func (e *envoys) publishEndpoints(ctx context.Context, f followed) error {
	p := e.memories.findPublication(f.gateway)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	read, err := e.readEndpoints(ctx, p, p.clustersOf(f.source))
	p.mu.Unlock()
	if err != nil || len(read.services) == 0 {
		return err
	}
	found := read.assign(e.assign)
	p.mu.Lock()
	defer p.mu.Unlock()
	e.publishNewer(f.gateway, p, p.keep(ctx, found))
	return nil
}

// publishNewer publishes assignments that are newer than the published ones, for the clusters of
// the last publication. The caller has locked p.
func (e *envoys) publishNewer(gateway types.NamespacedName, p *publication, newer envoy.Assignments) {
	if p.resources != nil && !p.removed && len(newer) > 0 {
		e.server.PublishEndpoints(gateway, p.tunnel, newer)
	}
}

// clustersOf returns the clusters in the last publication and in the one in progress, by name: the
// source's, or all without a source.
func (p *publication) clustersOf(source envoy.EndpointSource) []envoy.EndpointsOf {
	find := func(r *envoy.Resources) []envoy.EndpointsOf { return r.EndpointsFrom(source) }
	if source == (envoy.EndpointSource{}) {
		find = (*envoy.Resources).AllEndpoints
	}
	if p.next == nil {
		return find(p.resources)
	}
	clusters := slices.Clone(find(p.next))
	for _, cluster := range find(p.resources) {
		if !p.next.HasEndpoints(cluster.Cluster) {
			clusters = append(clusters, cluster)
		}
	}
	slices.SortFunc(clusters, func(a, b envoy.EndpointsOf) int { return strings.Compare(a.Cluster, b.Cluster) })
	return clusters
}
