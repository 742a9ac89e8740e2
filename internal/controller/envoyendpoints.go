package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// followed is a Service to whose pods the Envoys of a Gateway connect.
type followed struct {
	gateway, service types.NamespacedName
}

// setupEndpoints adds a controller that publishes the endpoints of a Service when they change.
// It runs beside the reconciler of Gateways, whose decisions do not depend on endpoints.
func setupEndpoints(m manager.Manager, e *envoys) error {
	return builder.TypedControllerManagedBy[followed](m).
		Named("endpoints").
		WithOptions(ctrlcontroller.TypedOptions[followed]{MaxConcurrentReconciles: 1}).
		Watches(&discoveryv1.EndpointSlice{}, handler.TypedEnqueueRequestsFromMapFunc(e.fromEndpointSlice)).
		Watches(&corev1.Pod{}, handler.TypedEnqueueRequestsFromMapFunc(e.fromConnectorPod), builder.WithPredicates(addressesChanged)).
		Complete(reconcile.TypedFunc[followed](func(ctx context.Context, f followed) (reconcile.Result, error) {
			return reconcile.Result{}, e.publishEndpoints(ctx, f)
		}))
}

// fromEndpointSlice returns the Gateways whose Envoys connect to the endpoints.
func (e *envoys) fromEndpointSlice(_ context.Context, slice client.Object) []followed {
	service := types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []followed
	for gateway, p := range e.published {
		if p.services[service] {
			found = append(found, followed{gateway, service})
		}
	}
	return found
}

// fromConnectorPod returns all Services to whose pods Envoys connect, because Envoys never
// connect to the addresses of connectors.
func (e *envoys) fromConnectorPod(context.Context, client.Object) []followed {
	e.mu.Lock()
	defer e.mu.Unlock()
	var found []followed
	for gateway, p := range e.published {
		for service := range p.services {
			found = append(found, followed{gateway, service})
		}
	}
	return found
}

// addressesChanged passes updates of a pod only if the addresses change that it uses.
var addressesChanged = predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
	before, after := u.ObjectOld.(*corev1.Pod), u.ObjectNew.(*corev1.Pod)
	return hasEnded(before) != hasEnded(after) || !equality.Semantic.DeepEqual(before.Status.PodIPs, after.Status.PodIPs)
}}

// follow sets the Services of the publication to those of the resources, which may be nil.
func (e *envoys) follow(p *publication, all ...*envoy.Resources) {
	services := map[types.NamespacedName]bool{}
	for _, resources := range all {
		if resources == nil {
			continue
		}
		for _, cluster := range resources.Endpoints {
			services[cluster.Service] = true
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	p.services = services
}

// publishEndpoints publishes the current endpoints of a Service for the Envoys of a Gateway.
func (e *envoys) publishEndpoints(ctx context.Context, f followed) error {
	p := e.find(f.gateway)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resources == nil {
		return nil // the first publication reads the endpoints
	}
	ofOther := func(cluster envoy.EndpointsOf) bool { return cluster.Service != f.service }
	assignments, err := e.assign(ctx, p, slices.DeleteFunc(slices.Clone(p.resources.Endpoints), ofOther))
	if err == nil && len(assignments) > 0 {
		e.server.PublishEndpoints(f.gateway, p.tunnel, assignments)
	}
	return err
}

// assign returns the endpoints of the clusters from the EndpointSlices in the cache.
func (e *envoys) assign(ctx context.Context, p *publication, clusters []envoy.EndpointsOf) (envoy.Assignments, error) {
	if len(clusters) == 0 {
		return nil, nil
	}
	reserved, err := e.connectorAddresses(ctx)
	if err != nil {
		return nil, err
	}
	assignments := make(envoy.Assignments, len(clusters))
	for _, cluster := range clusters {
		var list discoveryv1.EndpointSliceList
		if err := e.reader.List(ctx, &list, client.MatchingFields{state.IndexService: cluster.Service.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the EndpointSlices of Service %s: %w", cluster.Service, err)
		}
		found := make([]*discoveryv1.EndpointSlice, len(list.Items))
		for i := range list.Items {
			found[i] = &list.Items[i]
		}
		assignment, omitted := envoy.Assign(cluster, found, func(ip string) bool { return reserved[ip] })
		assignments[cluster.Cluster] = assignment
		p.reportLimit(ctx, cluster, omitted)
	}
	return assignments, nil
}

// reportLimit logs when Envoy begins to get only a part of the endpoints of a cluster.
func (p *publication) reportLimit(ctx context.Context, cluster envoy.EndpointsOf, omitted int) {
	if omitted == 0 {
		delete(p.limited, cluster.Cluster)
		return
	}
	if !p.limited[cluster.Cluster] {
		log.FromContext(ctx).Info("Envoy does not use all endpoints of a Service, because the clusters of its namespace share a limit",
			"service", cluster.Service, "port", cluster.PortName, "used", cluster.Limit, "omitted", omitted)
	}
	p.limited[cluster.Cluster] = true
}

// connectorAddresses returns the addresses of the connectors' pods. No Service may lead to
// them: the owner of a Service can write its EndpointSlices.
func (e *envoys) connectorAddresses(ctx context.Context) (map[string]bool, error) {
	var pods corev1.PodList
	if err := e.reader.List(ctx, &pods, client.InNamespace(e.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the pods of the connectors: %w", err)
	}
	addresses := map[string]bool{}
	for i := range pods.Items {
		if hasEnded(&pods.Items[i]) {
			continue
		}
		for _, ip := range pods.Items[i].Status.PodIPs {
			addresses[routing.CanonicalIP(ip.IP)] = true
		}
	}
	return addresses, nil
}
