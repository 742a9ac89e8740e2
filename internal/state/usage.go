package state

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// loadUsage counts the older Gateways and the orphaned Tunnels in the Gateway's
// namespace. They have precedence over the Gateway for the namespace's tunnel limit.
func (l Loader) loadUsage(ctx context.Context, s *gateway.Snapshot) error {
	managed, err := l.managedGateways(ctx, s.Gateway.Namespace)
	if err != nil {
		return err
	}
	exists := map[string]bool{}
	for _, g := range managed {
		exists[g.Name] = true
		if gateway.Older(g, s.Gateway) {
			s.OlderGateways++
		}
	}
	var tunnels v1alpha1.TunnelList
	err = l.Reader.List(ctx, &tunnels, client.InNamespace(l.ControllerNamespace),
		client.MatchingFields{IndexGatewayNamespace: s.Gateway.Namespace}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the Tunnels of namespace %s: %w", s.Gateway.Namespace, err)
	}
	for i := range tunnels.Items {
		t := &tunnels.Items[i].Spec
		if t.ControllerName == string(l.ControllerName) && !exists[t.Gateway.Name] {
			s.OrphanedTunnels++
		}
	}
	return nil
}

// managedGateways returns the namespace's Gateways that this controller manages. It
// omits Gateways that are being deleted, because their Tunnels retire.
func (l Loader) managedGateways(ctx context.Context, namespace string) ([]*gatewayv1.Gateway, error) {
	var classes gatewayv1.GatewayClassList
	if err := l.Reader.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the GatewayClasses: %w", err)
	}
	managedClass := map[gatewayv1.ObjectName]bool{}
	for i := range classes.Items {
		class := &classes.Items[i]
		managedClass[gatewayv1.ObjectName(class.Name)] = class.Spec.ControllerName == l.ControllerName
	}
	var list gatewayv1.GatewayList
	if err := l.Reader.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Gateways of namespace %s: %w", namespace, err)
	}
	var managed []*gatewayv1.Gateway
	for i := range list.Items {
		if g := &list.Items[i]; managedClass[g.Spec.GatewayClassName] && g.DeletionTimestamp.IsZero() {
			managed = append(managed, g)
		}
	}
	return managed, nil
}
