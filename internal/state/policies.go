package state

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// policyIndexes are the indexes of BackendTLSPolicies.
func policyIndexes(controller gatewayv1.GatewayController) []Index {
	object := &gatewayv1.BackendTLSPolicy{}
	return []Index{
		{object, IndexTarget, func(o client.Object) []string {
			return distinct(gateway.ServicesOfPolicy(o.(*gatewayv1.BackendTLSPolicy)))
		}},
		{object, IndexCABundle, func(o client.Object) []string {
			return distinct(gateway.ConfigMapsOfPolicy(o.(*gatewayv1.BackendTLSPolicy)))
		}},
		{object, IndexStatusAncestor, func(o client.Object) []string {
			return distinct(PolicyAncestors(o.(*gatewayv1.BackendTLSPolicy), controller))
		}},
	}
}

// PolicyAncestors returns the Gateways in this controller's status entries.
func PolicyAncestors(policy *gatewayv1.BackendTLSPolicy, controller gatewayv1.GatewayController) []gateway.Owner {
	var found []gateway.Owner
	for _, entry := range policy.Status.Ancestors {
		if owner, ok := gateway.AncestorOfPolicy(entry.AncestorRef, policy.Namespace); ok && entry.ControllerName == controller {
			found = append(found, owner)
		}
	}
	return found
}

// loadPolicies reads the BackendTLSPolicies for the Services in the snapshot, and their
// certificate authorities. It requires the Services.
func (l Loader) loadPolicies(ctx context.Context, s *gateway.Snapshot) error {
	key := GatewayKey(s.Gateway.Namespace, s.Gateway.Name)
	if err := l.loadStatusPolicies(ctx, key, s); err != nil {
		return err
	}
	loaded := map[types.NamespacedName]bool{}
	for _, policy := range s.BackendTLSPolicies {
		loaded[client.ObjectKeyFromObject(policy)] = true
	}
	for service := range s.Services.All() {
		found, err := l.listPolicies(ctx, client.MatchingFields{IndexTarget: service.String()})
		if err != nil {
			return err
		}
		for _, policy := range found {
			if name := client.ObjectKeyFromObject(policy); !loaded[name] {
				loaded[name] = true
				s.BackendTLSPolicies = append(s.BackendTLSPolicies, policy)
			}
		}
	}
	return l.loadCABundles(ctx, key, s)
}

// loadStatusPolicies reads the policies whose status has an entry for the key.
func (l Loader) loadStatusPolicies(ctx context.Context, key Key, s *gateway.Snapshot) (err error) {
	s.BackendTLSPolicies, err = l.listPolicies(ctx, client.MatchingFields{IndexStatusAncestor: key.String()})
	return err
}

func (l Loader) listPolicies(ctx context.Context, selection client.ListOption) ([]*gatewayv1.BackendTLSPolicy, error) {
	var list gatewayv1.BackendTLSPolicyList
	if err := l.Reader.List(ctx, &list, selection, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BackendTLSPolicies: %w", err)
	}
	found := make([]*gatewayv1.BackendTLSPolicy, len(list.Items))
	for i := range list.Items {
		found[i] = &list.Items[i]
	}
	return found, nil
}

// loadCABundles inspects the ConfigMaps of the effective policies.
func (l Loader) loadCABundles(ctx context.Context, key Key, s *gateway.Snapshot) error {
	names := gateway.CABundlesToRead(s)
	slices.SortFunc(names, compareNames)
	names = slices.Compact(names)
	retain(l.CABundles, key, names)
	s.CABundles = make(map[types.NamespacedName]gateway.CABundle, len(names))
	for _, name := range names {
		bundle, exists, err := l.CABundles.InspectBundle(ctx, name)
		if err != nil {
			return err
		}
		if exists {
			s.CABundles[name] = bundle
		}
	}
	return nil
}
