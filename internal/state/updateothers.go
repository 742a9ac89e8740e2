package state

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// applyListenerSet replaces a ListenerSet whose status has changed.
func (u *update) applyListenerSet(ctx context.Context, o changedObject) (bool, error) {
	return replaceStatus(ctx, u, o, &u.s.ListenerSets, &u.copied.sets, func(set *gatewayv1.ListenerSet) bool {
		key, ok := ParentGateway(set)
		return ok && key == u.key
	})
}

// applyPolicy replaces a BackendTLSPolicy whose status has changed.
func (u *update) applyPolicy(ctx context.Context, o changedObject) (bool, error) {
	return replaceStatus(ctx, u, o, &u.s.BackendTLSPolicies, &u.copied.policies, func(policy *gatewayv1.BackendTLSPolicy) bool {
		for _, service := range gateway.ServicesOfPolicy(policy) {
			if u.last.uses.services[service] > 0 {
				return true
			}
		}
		return slices.Contains(PolicyAncestors(policy, u.ControllerName), u.key)
	})
}

// applyAccessPolicy replaces an AccessPolicy whose status has changed.
func (u *update) applyAccessPolicy(ctx context.Context, o changedObject) (bool, error) {
	if u.s.AccessPoliciesUnknown {
		return true, nil
	}
	return replaceStatus(ctx, u, o, &u.s.AccessPolicies, &u.copied.access, func(policy *v1alpha1.AccessPolicy) bool {
		return u.last.hasParent(gateway.TargetsOfAccessPolicy(policy)) || u.last.hasParent(AccessPolicyAncestors(policy, u.ControllerName))
	})
}

// replaceStatus replaces an object that belongs to the snapshot if nothing but its status has
// changed. Otherwise, everything must be loaded.
func replaceStatus[T any, P interface {
	*T
	client.Object
}](ctx context.Context, u *update, o changedObject, all *[]P, isCopied *bool, belongs func(P) bool) (bool, error) {
	now, err := read[T, P](ctx, u, o)
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(*all, func(object P) bool { return client.ObjectKeyFromObject(object) == o.NamespacedName })
	isWanted := now != nil && belongs(now)
	if i < 0 || !isWanted {
		return i < 0 && !isWanted, nil
	}
	if !hasSameSpec((*all)[i], now) {
		return false, nil
	}
	if !isSameVersion((*all)[i], now) {
		place(all, isCopied, i, true, true, now)
	}
	u.changed[o.owner()] = true
	return true, nil
}

// applyNamespace replaces a namespace whose labels and annotations are the same.
func (u *update) applyNamespace(ctx context.Context, o changedObject) (bool, error) {
	before, ok := u.s.Namespaces[o.Name]
	if !ok {
		return true, nil
	}
	now, err := read[corev1.Namespace](ctx, u, o)
	if err != nil || now == nil || before == nil {
		return false, err
	}
	if before.UID != now.UID || before.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero() ||
		!maps.Equal(before.Labels, now.Labels) || !maps.Equal(before.Annotations, now.Annotations) {
		return false, nil
	}
	copyOnce(&u.s.Namespaces, &u.copied.namespaces)
	u.s.Namespaces[o.Name] = now
	return true, nil
}

// applyGrant requires that everything is loaded if objects refer to the ReferenceGrant's
// namespace.
func (u *update) applyGrant(_ context.Context, o changedObject) (bool, error) {
	return u.last.uses.grants[o.Namespace] == 0, nil
}

// applyInspected requires that everything is loaded if the snapshot contains what was found in
// the Secret or ConfigMap.
func (u *update) applyInspected(_ context.Context, o changedObject) (bool, error) {
	return !u.last.inspected.Has(o), nil
}
