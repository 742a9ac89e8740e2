package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// tunnelObjects reads and writes Tunnel objects. Every write contains the
// resourceVersion on which the decision was based.
type tunnelObjects struct {
	client    client.Client
	live      client.Reader
	namespace string
}

func (o tunnelObjects) key(gateway types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: tunnel.ObjectName(gateway)}
}

// read returns the Gateway's Tunnel from the reader, or nil if it does not exist.
func (o tunnelObjects) read(ctx context.Context, reader client.Reader, gateway types.NamespacedName) (*v1alpha1.Tunnel, error) {
	object := &v1alpha1.Tunnel{}
	key := o.key(gateway)
	if err := reader.Get(ctx, key, object); err != nil {
		if isNotFound(err, key.Name) {
			return nil, nil
		}
		return nil, fmt.Errorf("read Tunnel %s: %w", key, err)
	}
	return object, nil
}

// isCurrent reports whether the Gateway's Tunnel in the cache has the UID.
func (o tunnelObjects) isCurrent(gateway types.NamespacedName, uid types.UID) bool {
	object, err := o.read(context.Background(), o.client, gateway)
	return err == nil && object != nil && object.UID == uid &&
		object.Spec.Gateway == v1alpha1.GatewayReference{Namespace: gateway.Namespace, Name: gateway.Name}
}

// apply creates the Tunnel or updates its spec.
func (o tunnelObjects) apply(ctx context.Context, f tunnel.Facts) (*v1alpha1.Tunnel, error) {
	if f.Object == nil {
		object := &v1alpha1.Tunnel{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: tunnel.ObjectName(f.Name)},
			Spec:       tunnel.DesiredSpec(f),
		}
		if err := o.client.Create(ctx, object); err != nil {
			return nil, fmt.Errorf("create Tunnel %s: %w", client.ObjectKeyFromObject(object), err)
		}
		return object, nil
	}
	object := f.Object.DeepCopy()
	if object.Spec = tunnel.DesiredSpec(f); equal(object.Spec, f.Object.Spec) {
		return object, nil
	}
	if err := o.client.Update(ctx, object); err != nil {
		return nil, fmt.Errorf("update Tunnel %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return object, nil
}

// writeStatus writes the Tunnel's status if it differs.
func (o tunnelObjects) writeStatus(ctx context.Context, object *v1alpha1.Tunnel, status v1alpha1.TunnelStatus) (*v1alpha1.Tunnel, error) {
	switch {
	case equal(object.Status, status):
		return object, nil
	case tunnel.IsNewer(object):
		return o.patchStatus(ctx, object, status)
	}
	written := object.DeepCopy()
	written.Status = status
	if err := o.client.Status().Update(ctx, written); err != nil {
		return nil, fmt.Errorf("write the status of Tunnel %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return written, nil
}

// remove deletes the Tunnel unless it has changed since the decision.
func (o tunnelObjects) remove(ctx context.Context, object *v1alpha1.Tunnel) error {
	err := o.client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Tunnel %s: %w", client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// list returns all Tunnels from the reader. Callers must not change Tunnels from the
// cache, because list does not copy them.
func (o tunnelObjects) list(ctx context.Context, reader client.Reader) ([]v1alpha1.Tunnel, error) {
	var list v1alpha1.TunnelList
	if err := reader.List(ctx, &list, client.InNamespace(o.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Tunnels: %w", err)
	}
	return list.Items, nil
}

// isRotating reports whether the token of any Tunnel except the named one is being
// rotated. This version does not continue a rotation for a Tunnel that a newer version
// serves.
func isRotating(tunnels []v1alpha1.Tunnel, except string) bool {
	for i := range tunnels {
		if tunnels[i].Name != except && tunnels[i].Status.Token.Phase != "" && !tunnel.IsNewer(&tunnels[i]) {
			return true
		}
	}
	return false
}

// isStale reports whether a write failed because the Tunnel in the API server has changed.
func isStale(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

func gatewayOf(object *v1alpha1.Tunnel) state.Key {
	return state.GatewayKey(object.Spec.Gateway.Namespace, object.Spec.Gateway.Name)
}
