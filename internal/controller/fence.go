package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// patchStatus writes the status fields that differ, and nothing else. An update would
// remove fields from a newer controller version, which this version does not know.
func (o tunnelObjects) patchStatus(ctx context.Context, object *v1alpha1.Tunnel, status v1alpha1.TunnelStatus) (*v1alpha1.Tunnel, error) {
	written := object.DeepCopy()
	written.Status = status
	if err := o.client.Status().Patch(ctx, written, client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, fmt.Errorf("write the status of Tunnel %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return written, nil
}

// withhold stops publishing for a Gateway whose Tunnel a newer controller version
// serves. The Envoys stay connected and keep what they have, without a response.
func (e *envoys) withhold(gateway types.NamespacedName) {
	if e.forget(gateway) {
		e.server.Withhold(gateway)
	}
}
