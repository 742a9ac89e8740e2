package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// fromPolicy maps a BackendTLSPolicy to the Gateways whose routes use a Service that it
// targets, and to the Gateways in its status.
func (w watches) fromPolicy(ctx context.Context, policy *gatewayv1.BackendTLSPolicy) ([]state.Key, error) {
	keys := state.PolicyAncestors(policy, w.controllerName)
	for _, service := range gateway.ServicesOfPolicy(policy) {
		found, err := w.fromBackend(ctx, envoy.EndpointSource{NamespacedName: service})
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// fromConfigMap maps a ConfigMap's metadata to the Gateways of the BackendTLSPolicies that
// refer to it.
func (w watches) fromConfigMap(ctx context.Context, configMap *metav1.PartialObjectMetadata) ([]state.Key, error) {
	var list gatewayv1.BackendTLSPolicyList
	refer := client.MatchingFields{state.IndexCABundle: client.ObjectKeyFromObject(configMap).String()}
	if err := w.reader.List(ctx, &list, refer, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	var keys []state.Key
	for i := range list.Items {
		found, err := w.fromPolicy(ctx, &list.Items[i])
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// fromAccessPolicy maps an AccessPolicy to the Gateways of its targets and of the entries in
// its status. A ListenerSet without a Gateway is its own key.
func (w watches) fromAccessPolicy(ctx context.Context, policy *v1alpha1.AccessPolicy) ([]state.Key, error) {
	var keys []state.Key
	for _, owner := range slices.Concat(gateway.TargetsOfAccessPolicy(policy), state.AccessPolicyAncestors(policy, w.controllerName)) {
		found, err := w.fromParent(ctx, owner)
		if err != nil {
			return keys, err
		}
		keys = append(keys, found...)
	}
	return keys, nil
}

// fromAccessPolicyCRD returns every managed Gateway: without the CRD, their AccessPolicies
// are unknown.
func (w watches) fromAccessPolicyCRD(ctx context.Context, _ *metav1.PartialObjectMetadata) ([]state.Key, error) {
	return w.managedGateways(ctx)
}

// accessPolicyCRDChanged passes changes to the CRD of AccessPolicies, and its deletion. The
// controller restarts when the CRD is created.
var accessPolicyCRDChanged = predicate.And(
	predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == accessPolicyCRD }),
	predicate.Funcs{CreateFunc: func(event.CreateEvent) bool { return false }},
)
