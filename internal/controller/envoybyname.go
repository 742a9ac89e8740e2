package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// fromService returns the Gateways whose Envoys subscribe to the Service's clusters by
// their names. The routes of other Gateways are built when a Service changes.
func (e *envoys) fromService(_ context.Context, service client.Object) []followed {
	return e.subscribers(client.ObjectKeyFromObject(service))
}

func (e *envoys) subscribers(service types.NamespacedName) []followed {
	var found []followed
	for _, gateway := range e.server.Subscribers(service) {
		found = append(found, followed{gateway, service})
	}
	return found
}

// publishByName publishes the current endpoints of the clusters to which Envoys subscribe,
// and for which this process has published no routes.
func (e *envoys) publishByName(ctx context.Context, f followed) error {
	wanted := e.server.Subscriptions(f.gateway, f.service)
	if len(wanted.Clusters) == 0 {
		return nil
	}
	clusters, found, err := e.resolveNames(ctx, wanted)
	if err != nil {
		return err
	}
	read, err := e.readSlices(ctx, clusters)
	if err != nil {
		return err
	}
	for _, a := range read.assign(e.assign) {
		found[a.cluster.Cluster] = a.endpoints
	}
	e.server.PublishByName(f.gateway, wanted.Number, found)
	return nil
}

// resolveNames returns the clusters whose Services have their ports, and no endpoints for
// the others, because their addresses can belong to another tenant's pods now. It omits
// ServiceImports.
func (e *envoys) resolveNames(ctx context.Context, wanted xds.Subscriptions) (clusters []envoy.EndpointsOf, without envoy.Assignments, err error) {
	without = envoy.Assignments{}
	for _, name := range wanted.Clusters {
		if name.IsImport {
			continue
		}
		var service corev1.Service // has no port if it does not exist
		if err := e.reader.Get(ctx, name.Service, &service, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			return nil, nil, fmt.Errorf("get Service %s: %w", name.Service, err)
		}
		if cluster, ok := name.EndpointsOf(&service, wanted.Limits[name.Service.Namespace]); ok {
			clusters = append(clusters, cluster)
		} else {
			without[name.Name] = nil
		}
	}
	return clusters, without, nil
}
