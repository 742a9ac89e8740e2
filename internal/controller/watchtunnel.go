package controller

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// fromSecret maps a Secret's metadata to Gateways. An API token affects the Gateways
// whose Tunnels use it. A tunnel token or an Envoy certificate affects its Tunnel's
// Gateway. A listener certificate affects the Gateways whose listeners refer to it.
func (w watches) fromSecret(ctx context.Context, secret *metav1.PartialObjectMetadata) ([]state.Key, error) {
	users, err := w.fromTunnels(ctx, func(t *v1alpha1.Tunnel) bool {
		source, ok := w.account.ForTunnel(t.Spec, t.Namespace)
		return ok && source.Secret == client.ObjectKeyFromObject(secret)
	})
	if err != nil {
		return nil, err
	}
	refers := client.MatchingFields{state.IndexCertificate: client.ObjectKeyFromObject(secret).String()}
	keys, err := w.fromGateways(ctx, refers)
	if err != nil {
		return nil, err
	}
	owner, err := w.fromConnectors(ctx, secret)
	if err != nil {
		return nil, err
	}
	sets, err := w.fromListenerSets(ctx, refers)
	return slices.Concat(users, keys, owner, sets), err
}

// fromConnectors maps a connector object to its Tunnel's Gateway. It also maps an
// object that has a connector object's name but no such owner, because the connectors
// cannot run until that object is deleted.
func (w watches) fromConnectors(ctx context.Context, object client.Object) ([]state.Key, error) {
	if object.GetNamespace() != w.namespace {
		return nil, nil
	}
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == connector.TunnelKind {
		var t v1alpha1.Tunnel
		if err := w.reader.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: owner.Name}, &t); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return []state.Key{gatewayOf(&t)}, nil
	}
	return w.fromTunnels(ctx, func(t *v1alpha1.Tunnel) bool {
		return connectorKey(t).Name == object.GetName() || connector.IdentitySecretName(t) == object.GetName()
	})
}

// fromTunnels returns the Gateways whose Tunnels match.
func (w watches) fromTunnels(ctx context.Context, matches func(*v1alpha1.Tunnel) bool) ([]state.Key, error) {
	var list v1alpha1.TunnelList
	err := w.reader.List(ctx, &list, client.InNamespace(w.namespace), client.UnsafeDisableDeepCopy)
	var keys []state.Key
	for i := range list.Items {
		if matches(&list.Items[i]) {
			keys = append(keys, gatewayOf(&list.Items[i]))
		}
	}
	return keys, err
}

// fromUncountedGateway maps a Gateway that may no longer count towards its namespace's
// tunnel limit to the Gateways over the limit.
func (w watches) fromUncountedGateway(ctx context.Context, g *gatewayv1.Gateway) ([]state.Key, error) {
	return w.gatewaysOverLimit(ctx, g.Namespace)
}

// reducesUsage passes the changes after which a Gateway may no longer count towards its
// namespace's tunnel limit: it was deleted, its GatewayClass changed, or it was created again
// during a gap in the watch.
var reducesUsage = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*gatewayv1.Gateway), e.ObjectNew.(*gatewayv1.Gateway)
		return before.UID != after.UID || before.Spec.GatewayClassName != after.Spec.GatewayClassName ||
			before.DeletionTimestamp.IsZero() && !after.DeletionTimestamp.IsZero()
	},
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// fromTunnel maps a Tunnel to its Gateway and to its rivals' Gateways. If the Tunnel is
// gone, fromTunnel adds the Gateways over the namespace's limit.
func (w watches) fromTunnel(ctx context.Context, t *v1alpha1.Tunnel) ([]state.Key, error) {
	if t.Namespace != w.namespace {
		return nil, nil
	}
	rivals, err := w.fromTunnels(ctx, func(other *v1alpha1.Tunnel) bool { return tunnel.AreRivals(t, other) })
	keys := append(rivals, gatewayOf(t))
	if err != nil {
		return keys, err
	}
	err = w.reader.Get(ctx, client.ObjectKeyFromObject(t), &v1alpha1.Tunnel{})
	if err == nil {
		return keys, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return keys, err
	}
	limited, err := w.gatewaysOverLimit(ctx, t.Spec.Gateway.Namespace)
	return append(keys, limited...), err
}

func (w watches) fromTunnelObject(ctx context.Context, object client.Object) ([]state.Key, error) {
	return w.fromTunnel(ctx, object.(*v1alpha1.Tunnel))
}

// changesLifecycle reports whether an update of a Tunnel's status concerns more than the
// configuration that its controller has written: other Gateways can depend on it.
func changesLifecycle(before, after client.Object) bool {
	return !equal(withoutConfiguration(before), withoutConfiguration(after))
}

// withoutConfiguration returns the Tunnel's status without what each write of its configuration
// changes.
func withoutConfiguration(object client.Object) v1alpha1.TunnelStatus {
	status := object.(*v1alpha1.Tunnel).Status
	status.Configuration, status.Conditions, status.Phase, status.Hostnames = v1alpha1.ConfigurationRecord{}, nil, "", nil
	return status
}

// gatewaysOverLimit returns the Gateways that were rejected because of the namespace's
// tunnel limit.
func (w watches) gatewaysOverLimit(ctx context.Context, namespace string) ([]state.Key, error) {
	var list gatewayv1.GatewayList
	err := w.reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	var keys []state.Key
	for i := range list.Items {
		accepted := conditions.TypeAccepted.Find(list.Items[i].Status.Conditions)
		if conditions.ReasonLimitExceeded.Is(accepted) {
			keys = append(keys, state.GatewayKey(list.Items[i].Namespace, list.Items[i].Name))
		}
	}
	return keys, err
}

// managedGateways returns every managed Gateway and every managed Tunnel's Gateway.
func (w watches) managedGateways(ctx context.Context) ([]state.Key, error) {
	var classes gatewayv1.GatewayClassList
	if err := w.reader.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	managed := map[gatewayv1.ObjectName]bool{}
	for i := range classes.Items {
		managed[gatewayv1.ObjectName(classes.Items[i].Name)] = classes.Items[i].Spec.ControllerName == w.controllerName
	}
	var gateways gatewayv1.GatewayList
	var tunnels v1alpha1.TunnelList
	err := errors.Join(w.reader.List(ctx, &gateways, client.UnsafeDisableDeepCopy),
		w.reader.List(ctx, &tunnels, client.InNamespace(w.namespace), client.UnsafeDisableDeepCopy))
	found := map[state.Key]bool{}
	for i := range gateways.Items {
		if g := &gateways.Items[i]; managed[g.Spec.GatewayClassName] {
			found[state.GatewayKey(g.Namespace, g.Name)] = true
		}
	}
	for i := range tunnels.Items {
		if tunnels.Items[i].Spec.ControllerName == string(w.controllerName) {
			found[gatewayOf(&tunnels.Items[i])] = true
		}
	}
	return slices.Collect(maps.Keys(found)), err
}
