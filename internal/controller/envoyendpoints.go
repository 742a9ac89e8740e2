package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// followed is a Service to whose pods the Envoys of a Gateway connect.
type followed struct {
	gateway, service types.NamespacedName
}

// setupEndpoints adds a controller that publishes the endpoints of a Service when they change.
// It runs beside the reconciler of Gateways, whose decisions do not depend on endpoints.
func setupEndpoints(m manager.Manager, e *envoys) error {
	return builder.TypedControllerManagedBy[followed](m).
		Named("endpoints").
		WithOptions(ctrlcontroller.TypedOptions[followed]{MaxConcurrentReconciles: 1}).
		Watches(&discoveryv1.EndpointSlice{}, handler.TypedEnqueueRequestsFromMapFunc(e.fromEndpointSlice)).
		Watches(&corev1.Pod{}, handler.TypedEnqueueRequestsFromMapFunc(e.fromConnectorPod), builder.WithPredicates(addressesChanged)).
		Complete(reconcile.TypedFunc[followed](func(ctx context.Context, f followed) (reconcile.Result, error) {
			return reconcile.Result{}, e.publishEndpoints(ctx, f)
		}))
}

// fromEndpointSlice returns the Gateways whose Envoys connect to the endpoints.
func (e *envoys) fromEndpointSlice(_ context.Context, slice client.Object) []followed {
	service := types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
	return e.followers(func(other types.NamespacedName) bool { return other == service })
}

// fromConnectorPod returns all Services to whose pods Envoys connect, because Envoys never
// connect to the addresses of connectors.
func (e *envoys) fromConnectorPod(context.Context, client.Object) []followed {
	return e.followers(func(types.NamespacedName) bool { return true })
}

// addressesChanged passes updates of a pod only if the addresses change that it uses.
var addressesChanged = predicate.Funcs{UpdateFunc: func(u event.UpdateEvent) bool {
	before, after := u.ObjectOld.(*corev1.Pod), u.ObjectNew.(*corev1.Pod)
	return hasEnded(before) != hasEnded(after) || !equality.Semantic.DeepEqual(before.Status.PodIPs, after.Status.PodIPs)
}}
