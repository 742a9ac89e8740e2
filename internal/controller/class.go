package controller

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/pkg/consts"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/status"
)

// classReconciler writes the status of GatewayClasses that name this controller. It
// sets no finalizer: outside its own namespace, the controller writes only status.
type classReconciler struct {
	client         client.Client
	writer         *status.Writer
	controllerName gatewayv1.GatewayController
	// namespace is the controller's own namespace.
	namespace string
}

func setupClass(m manager.Manager, r *classReconciler) error {
	controller := builder.ControllerManagedBy(m).Named("gatewayclass").For(&gatewayv1.GatewayClass{})
	return register(controller, r.watches()).Complete(r)
}

// watches returns watches for the kinds that affect a GatewayClass.
func (r *classReconciler) watches() []watch[reconcile.Request] {
	return []watch[reconcile.Request]{
		{kinds.TunnelConfiguration, handler.EnqueueRequestsFromMapFunc(r.fromConfiguration), nil},
		{kinds.CustomResourceDefinition, handler.EnqueueRequestsFromMapFunc(r.allClasses), predicate.AnnotationChangedPredicate{}},
	}
}

// fromConfiguration maps a TunnelConfiguration to the GatewayClasses that refer to it.
func (r *classReconciler) fromConfiguration(ctx context.Context, object client.Object) []reconcile.Request {
	var list gatewayv1.GatewayClassList
	refer := client.MatchingFields{state.IndexParameters: client.ObjectKeyFromObject(object).String()}
	if err := r.client.List(ctx, &list, refer); err != nil {
		log.FromContext(ctx).Error(err, "failed to list GatewayClasses")
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
	}
	return requests
}

// allClasses maps a Gateway API CRD to every GatewayClass.
func (r *classReconciler) allClasses(ctx context.Context, object client.Object) []reconcile.Request {
	if !strings.HasSuffix(object.GetName(), "."+gatewayv1.GroupName) {
		return nil
	}
	var list gatewayv1.GatewayClassList
	if err := r.client.List(ctx, &list); err != nil {
		log.FromContext(ctx).Error(err, "failed to list GatewayClasses")
	}
	requests := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		requests[i] = reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])}
	}
	return requests
}

// Reconcile writes the status of a GatewayClass.
func (r *classReconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var class gatewayv1.GatewayClass
	if err := r.client.Get(ctx, request.NamespacedName, &class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if class.Spec.ControllerName != r.controllerName {
		return reconcile.Result{}, nil
	}
	snapshot := &gateway.ClassSnapshot{Class: &class, BundleVersions: map[string]string{}}
	if err := r.readCRDs(ctx, snapshot); err != nil {
		return reconcile.Result{}, err
	}
	var err error
	if snapshot.Configuration, err = state.ClassConfiguration(ctx, r.client, &class); err != nil {
		return reconcile.Result{}, err
	}
	decided := gateway.BuildClass(snapshot, gateway.Options{ControllerName: r.controllerName, ControllerNamespace: r.namespace})
	return reconcile.Result{}, r.writer.WriteClass(ctx, class.Name, decided)
}

// readCRDs reads the versions of the installed Gateway API CRDs, and the channel of
// HTTPRoutes.
func (r *classReconciler) readCRDs(ctx context.Context, snapshot *gateway.ClassSnapshot) error {
	list := kinds.CustomResourceDefinition.NewMetadataList()
	if err := r.client.List(ctx, list); err != nil {
		return fmt.Errorf("list the CRDs: %w", err)
	}
	for i := range list.Items {
		if crd := &list.Items[i]; strings.HasSuffix(crd.Name, "."+gatewayv1.GroupName) {
			snapshot.BundleVersions[crd.Name] = crd.Annotations[consts.BundleVersionAnnotation]
			snapshot.ExperimentalRoutes = snapshot.ExperimentalRoutes || hasExperimentalRoutes(crd)
		}
	}
	return nil
}
