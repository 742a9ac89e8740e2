package controller

import (
	"context"
	"errors"
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
	clusters, found, unread := e.resolveNames(ctx, wanted)
	read, err := e.readSlices(ctx, clusters)
	if err != nil {
		return errors.Join(unread, err)
	}
	for _, a := range read.assign(e.assign) {
		found[a.cluster.Cluster] = a.endpoints
	}
	e.server.PublishByName(f.gateway, wanted.Number, found)
	return unread
}

// resolveNames returns the clusters whose Services or ServiceImports have their ports, and no
// endpoints for the others, because their addresses can belong to another tenant's pods now. It
// omits clusters whose Service or ServiceImport could not be read.
func (e *envoys) resolveNames(ctx context.Context, wanted xds.Subscriptions) (clusters []envoy.EndpointsOf, without envoy.Assignments, err error) {
	without = envoy.Assignments{}
	var errs []error
	// Many clusters can have the same object, which can be large, so read it only once.
	objects := map[envoy.EndpointSource]client.Object{}
	for _, name := range wanted.Clusters {
		object, ok := objects[name.Source]
		if !ok {
			if object, err = e.readSource(ctx, name.Source); err != nil {
				errs = append(errs, err)
			}
			objects[name.Source] = object
		}
		if object == nil {
			continue
		}
		if cluster, ok := endpointsOf(name, object, wanted.Limits[name.Source.Namespace]); ok {
			clusters = append(clusters, cluster)
		} else {
			without[name.Name] = nil
		}
	}
	return clusters, without, errors.Join(errs...)
}

// readSource reads the Service or ServiceImport, which has no ports if it does not exist.
func (e *envoys) readSource(ctx context.Context, source envoy.EndpointSource) (client.Object, error) {
	var object client.Object = &corev1.Service{}
	if source.Import {
		object = &multicluster.ServiceImport{}
	}
	err := e.reader.Get(ctx, source.NamespacedName, object, client.UnsafeDisableDeepCopy)
	if client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("get %s: %w", source, err)
	}
	return object, nil
}

func endpointsOf(name envoy.ClusterName, object client.Object, limit int) (cluster envoy.EndpointsOf, ok bool) {
	if imported, isImport := object.(*multicluster.ServiceImport); isImport {
		return name.ImportedEndpointsOf(imported, limit)
	}
	return name.EndpointsOf(object.(*corev1.Service), limit)
}
