package state

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Endpoints returns a Service's EndpointSlices. They must not be changed. The reader
// must provide the [Indexes].
func Endpoints(ctx context.Context, r client.Reader, service types.NamespacedName) ([]*discoveryv1.EndpointSlice, error) {
	return listEndpoints(ctx, r, IndexService, service)
}

// ImportEndpoints returns a ServiceImport's EndpointSlices from all source clusters. They
// must not be changed. The reader must provide the [Indexes].
func ImportEndpoints(ctx context.Context, r client.Reader, serviceImport types.NamespacedName) ([]*discoveryv1.EndpointSlice, error) {
	return listEndpoints(ctx, r, IndexServiceImport, serviceImport)
}

func listEndpoints(ctx context.Context, r client.Reader, index string, name types.NamespacedName) ([]*discoveryv1.EndpointSlice, error) {
	var list discoveryv1.EndpointSliceList
	if err := r.List(ctx, &list, client.MatchingFields{index: name.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the EndpointSlices of %s %s: %w", index, name, err)
	}
	found := make([]*discoveryv1.EndpointSlice, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}
