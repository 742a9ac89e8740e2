package state

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
)

// ErrNoAccessPolicies is the error of readers that cannot list AccessPolicies, because the
// cluster does not serve them or the user may not read them. meta.IsNoMatchError recognizes
// it.
var ErrNoAccessPolicies error = &meta.NoKindMatchError{
	GroupKind: kinds.AccessPolicy.GVK().GroupKind(), SearchedVersions: []string{kinds.AccessPolicy.GVK().Version},
}

// accessPolicyIndexes are the indexes of AccessPolicies.
func accessPolicyIndexes(controller gatewayv1.GatewayController) []Index {
	object := &v1alpha1.AccessPolicy{}
	return []Index{
		{object, IndexTarget, func(o client.Object) []string {
			return distinct(gateway.TargetsOfAccessPolicy(o.(*v1alpha1.AccessPolicy)))
		}},
		{object, IndexStatusAncestor, func(o client.Object) []string {
			return distinct(AccessPolicyAncestors(o.(*v1alpha1.AccessPolicy), controller))
		}},
	}
}

// AccessPolicyAncestors returns the Gateways and ListenerSets in this controller's status
// entries.
func AccessPolicyAncestors(policy *v1alpha1.AccessPolicy, controller gatewayv1.GatewayController) []gateway.Owner {
	var found []gateway.Owner
	for _, entry := range policy.Status.Ancestors {
		if owner, ok := gateway.OwnerOf(entry.AncestorRef, policy.Namespace); ok && entry.ControllerName == controller {
			found = append(found, owner)
		}
	}
	return found
}

// loadAccessPolicies reads the AccessPolicies that target one of the owners, a Gateway and
// its ListenerSets, or whose status has an entry for one of them.
func (l Loader) loadAccessPolicies(ctx context.Context, owners []gateway.Owner, s *gateway.Snapshot) error {
	loaded := map[types.NamespacedName]bool{}
	for _, owner := range owners {
		for _, selection := range [][]client.ListOption{
			{client.MatchingFields{IndexTarget: owner.String()}, client.InNamespace(owner.Namespace)},
			{client.MatchingFields{IndexStatusAncestor: owner.String()}},
		} {
			var list v1alpha1.AccessPolicyList
			err := l.Reader.List(ctx, &list, append(selection, client.UnsafeDisableDeepCopy)...)
			if errors.Is(err, ErrNoAccessPolicies) {
				s.AccessPoliciesUnknown = true
				continue
			}
			if err != nil {
				return fmt.Errorf("list the AccessPolicies of %s: %w", owner, err)
			}
			for i := range list.Items {
				if name := client.ObjectKeyFromObject(&list.Items[i]); !loaded[name] {
					loaded[name] = true
					s.AccessPolicies = append(s.AccessPolicies, &list.Items[i])
				}
			}
		}
	}
	return nil
}

// listAccessPolicies lists the AccessPolicies in the namespace of a Gateway or ListenerSet,
// once. Without the permission, it is unknown whether they protect the hostnames. That is
// no [Gap]: many teams use a Gateway of the platform, and may not list its namespace.
func (r *reading) listAccessPolicies(ctx context.Context, namespace string) error {
	key := objectKey{kinds.AccessPolicy.GVK().Kind, types.NamespacedName{Namespace: namespace}}
	if r.isRead(kinds.AccessPolicy, namespace) || r.visited[key] || slices.Contains(r.namespaces, namespace) {
		return nil
	}
	r.visited[key] = true
	err := r.readNamespace(ctx, kinds.AccessPolicy, namespace)
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// readsPolicies reports whether the AccessPolicies of the namespace were read.
func (r *reading) readsPolicies(namespace string) bool {
	return !r.notServed[kinds.AccessPolicy.GVK().Kind] && r.isRead(kinds.AccessPolicy, namespace)
}

// hasPolicies reports whether the AccessPolicies in the list's namespace were read. A list
// of all namespaces finds every AccessPolicy that was read.
func (r *liveReader) hasPolicies(opts []client.ListOption) bool {
	namespace := (&client.ListOptions{}).ApplyOptions(opts).Namespace
	return r.readsPolicies == nil || namespace == "" || r.readsPolicies(namespace)
}
