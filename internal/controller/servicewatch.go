package controller

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

func (w watches) fromService(ctx context.Context, service *corev1.Service) ([]state.Key, error) {
	return w.fromBackend(ctx, envoy.EndpointSource{NamespacedName: client.ObjectKeyFromObject(service)})
}

// fromBackend maps a Service or ServiceImport to the Gateways of the routes that name it.
func (w watches) fromBackend(ctx context.Context, source envoy.EndpointSource) ([]state.Key, error) {
	index := state.IndexBackend
	if source.Import {
		index = state.IndexImportBackend
	}
	return w.fromRoutes(ctx, client.MatchingFields{index: source.NamespacedName.String()})
}

// fromAnyImport returns the Gateways of the routes that name ServiceImports.
func (w watches) fromAnyImport(ctx context.Context) ([]state.Key, error) {
	var keys []state.Key
	var errs []error
	err := state.ForEachRoute(ctx, w.reader, func(route client.Object) {
		if len(state.BackendImports(route)) > 0 {
			found, err := w.fromRoute(ctx, route)
			keys, errs = append(keys, found...), append(errs, err)
		}
	})
	return keys, errors.Join(append(errs, err)...)
}

// fromEndpointSlice maps an EndpointSlice to the Gateways whose decisions depend on it: it
// contains an address that no backend may have, or its Service has a named target port,
// whose number only EndpointSlices contain.
func (w watches) fromEndpointSlice(ctx context.Context, slice *discoveryv1.EndpointSlice) ([]state.Key, error) {
	reserved, err := w.reservedAddresses(ctx)
	if err != nil {
		return nil, err
	}
	if gateway.RefusedAddress(slice, reserved) != "" {
		return w.fromBackends(ctx, slice)
	}
	name := client.ObjectKey{Namespace: slice.Namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
	var service corev1.Service
	if err := w.reader.Get(ctx, name, &service); err != nil || !gateway.NamesTargetPort(&service) {
		return nil, client.IgnoreNotFound(err)
	}
	return w.fromService(ctx, &service)
}

// fromConnectorPod maps a connector pod to the Gateways with a backend that has one of the
// pod's addresses. Connectors start and stop seldom, so that it may look at all
// EndpointSlices.
func (w watches) fromConnectorPod(ctx context.Context, pod *corev1.Pod) ([]state.Key, error) {
	addresses := map[string]bool{}
	for _, ip := range pod.Status.PodIPs {
		addresses[routing.CanonicalIP(ip.IP)] = true
	}
	if len(addresses) == 0 {
		return nil, nil
	}
	var list discoveryv1.EndpointSliceList
	if err := w.reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var keys []state.Key
	var errs []error
	for i := range list.Items {
		slice := &list.Items[i]
		if contains(slice, addresses) {
			found, err := w.fromBackends(ctx, slice)
			keys, errs = append(keys, found...), append(errs, err)
		}
	}
	return keys, errors.Join(errs...)
}

// fromBackends maps an EndpointSlice to the Gateways of the routes that name its Service or
// its ServiceImport.
func (w watches) fromBackends(ctx context.Context, slice *discoveryv1.EndpointSlice) ([]state.Key, error) {
	var keys []state.Key
	for _, source := range sourcesOf(slice) {
		found, err := w.fromBackend(ctx, source)
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// contains reports whether the EndpointSlice contains one of the canonical addresses.
func contains(slice *discoveryv1.EndpointSlice, addresses map[string]bool) bool {
	for i := range slice.Endpoints {
		for _, ip := range slice.Endpoints[i].Addresses {
			if addresses[routing.CanonicalIP(ip)] {
				return true
			}
		}
	}
	return false
}

// reservedAddresses returns a function that reports the addresses of connectors and of the
// controller. It reads them from the cache, so that a decision after the change reads the
// same or newer ones.
func (w watches) reservedAddresses(ctx context.Context) (isReserved func(ip string) bool, err error) {
	reserved, err := state.ReservedAddresses(ctx, w.reader, w.namespace, w.podIPs)
	return func(ip string) bool { return reserved[ip] }, err
}

// serviceChanged passes Service updates only if the spec or an annotation that affects
// decisions changes.
var serviceChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*corev1.Service), e.ObjectNew.(*corev1.Service)
	return !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
		!maps.Equal(gateway.TrafficAnnotations(before.Annotations), gateway.TrafficAnnotations(after.Annotations))
}}

// endpointsChanged passes EndpointSlice updates only if the ports or the Service change, or
// why an address is refused, and not when endpoints become ready.
func (w watches) endpointsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*discoveryv1.EndpointSlice), e.ObjectNew.(*discoveryv1.EndpointSlice)
		if !slices.Equal(sourcesOf(before), sourcesOf(after)) || !equality.Semantic.DeepEqual(before.Ports, after.Ports) {
			return true
		}
		reserved, err := w.reservedAddresses(context.Background())
		if err != nil {
			// Reads from the cache fail only if an index is missing, which is a bug.
			log.Log.Error(err, "failed to read the addresses of connectors")
			return true
		}
		return gateway.RefusedAddress(before, reserved) != gateway.RefusedAddress(after, reserved)
	}}
}

// addressesChanged passes pod updates only if the addresses that the pod uses change.
var addressesChanged = predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
	before, after := u.ObjectOld.(*corev1.Pod), u.ObjectNew.(*corev1.Pod)
	return state.HasEnded(before) != state.HasEnded(after) || !equality.Semantic.DeepEqual(before.Status.PodIPs, after.Status.PodIPs)
}}
