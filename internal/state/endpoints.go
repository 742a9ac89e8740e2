package state

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Endpoints returns the EndpointSlices of a Service, or of a ServiceImport from all source
// clusters. They must not be changed. The reader must provide the [Indexes].
func Endpoints(ctx context.Context, r client.Reader, name types.NamespacedName, isImport bool) ([]*discoveryv1.EndpointSlice, error) {
	index := IndexService
	if isImport {
		index = IndexServiceImport
	}
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
