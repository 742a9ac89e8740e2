package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// fromService returns the Gateways whose Envoys subscribe to the Service's clusters by
// their names. The routes of other Gateways are built when a Service changes.
func (e *envoys) fromService(_ context.Context, service client.Object) []followed {
	return e.subscribers(envoy.EndpointSource{NamespacedName: client.ObjectKeyFromObject(service)})
}

func (e *envoys) subscribers(source envoy.EndpointSource) []followed {
	var found []followed
	for _, gateway := range e.server.Subscribers(source) {
		found = append(found, followed{gateway, source})
	}
	return found
}

// publishByName publishes the current endpoints of the clusters to which Envoys subscribe,
// and for which this process has published no routes.
func (e *envoys) publishByName(ctx context.Context, f followed) error {
	wanted := e.server.Subscriptions(f.gateway, f.source)
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

// resolveNames returns the clusters whose Services or ServiceImports have their ports, and no
// endpoints for the others, because their addresses can belong to another tenant's pods now.
func (e *envoys) resolveNames(ctx context.Context, wanted xds.Subscriptions) (clusters []envoy.EndpointsOf, without envoy.Assignments, err error) {
	without = envoy.Assignments{}
	for _, name := range wanted.Clusters {
		cluster, ok, err := e.resolveName(ctx, name, wanted.Limits[name.Source.Namespace])
		if err != nil {
			return nil, nil, err
		}
		if ok {
			clusters = append(clusters, cluster)
		} else {
			without[name.Name] = nil
		}
	}
	return clusters, without, nil
}

// resolveName reads the object, which has no port if it does not exist.
func (e *envoys) resolveName(ctx context.Context, name envoy.ClusterName, limit int) (cluster envoy.EndpointsOf, ok bool, err error) {
	var service corev1.Service
	var imported multicluster.ServiceImport
	var object client.Object = &service
	if name.Source.Import {
		object = &imported
	}
	err = e.reader.Get(ctx, name.Source.NamespacedName, object, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return cluster, false, fmt.Errorf("get %s: %w", name.Source, err)
	}
	if name.Source.Import {
		cluster, ok = name.ImportedEndpointsOf(&imported, limit)
	} else {
		cluster, ok = name.EndpointsOf(&service, limit)
	}
	return cluster, ok, nil
}
