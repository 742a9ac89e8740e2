package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// roleFinalizer is on the Role and the RoleBinding by which the controller works
// in a namespace. Both stay in force while they are being deleted, so what is
// deleted with its namespace can be let go of.
const roleFinalizer = "tunnelgateway.dev/role"

// roleKeeper keeps the controller's own Role and RoleBinding in each namespace
// that has something with a finalizer of ours. A namespace is deleted all at
// once: without its Role, the controller could take no finalizer off any more,
// and delete no tunnel.
type roleKeeper struct {
	client         client.Client
	live           client.Reader
	cached         client.Reader // the metadata of Secrets too
	controllerName gatewayv1.GatewayController
	names          []string
}

// setupRoleKeeper does nothing for a controller whose permissions are in no
// namespace.
func setupRoleKeeper(m manager.Manager, controllerName gatewayv1.GatewayController, names []string) error {
	if len(names) == 0 {
		return nil
	}
	k := &roleKeeper{client: m.GetClient(), live: m.GetAPIReader(), cached: m.GetCache(), controllerName: controllerName, names: names}
	byNamespace := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: object.GetNamespace()}}}
	})
	which := builder.WithPredicates(predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return k.holds(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return k.holds(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return k.holds(e.ObjectOld) != k.holds(e.ObjectNew) },
	})
	return builder.ControllerManagedBy(m).Named("roles").
		Watches(&gatewayv1.Gateway{}, byNamespace, which).
		Watches(&v1alpha1.TunnelConfiguration{}, byNamespace, which).
		WatchesMetadata(&corev1.Secret{}, byNamespace, which).
		Complete(k)
}

// holds reports whether the object has a finalizer that the controller takes off.
func (k *roleKeeper) holds(object client.Object) bool {
	return controllerutil.ContainsFinalizer(object, state.Finalizer) || controllerutil.ContainsFinalizer(object, credentialsFinalizer(k.controllerName))
}

// Reconcile puts the finalizer on Role and RoleBinding in the namespace that
// the request names, or takes it off.
func (k *roleKeeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	needed, err := k.needed(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	for _, kind := range []string{"Role", "RoleBinding"} {
		for _, name := range k.names {
			if err := k.keep(ctx, kind, types.NamespacedName{Namespace: request.Name, Name: name}, needed); err != nil {
				return reconcile.Result{}, err
			}
		}
	}
	return reconcile.Result{}, nil
}

// needed reports whether anything in the namespace has a finalizer of ours.
func (k *roleKeeper) needed(ctx context.Context, namespace string) (bool, error) {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	needed := false
	for _, list := range []client.ObjectList{&gatewayv1.GatewayList{}, &v1alpha1.TunnelConfigurationList{}, secrets} {
		// Of all namespaces, since that of the API token may be none that is worked
		// in.
		if err := k.cached.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return false, fmt.Errorf("looking what is held in namespace %s: %w", namespace, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			object := o.(client.Object)
			needed = needed || object.GetNamespace() == namespace && k.holds(object)
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return needed, nil
}

// keep does nothing where there is no object of the name: the namespace of the
// API token has a Role of another name than the others.
func (k *roleKeeper) keep(ctx context.Context, kind string, name types.NamespacedName, needed bool) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(kind))
	if err := k.live.Get(ctx, name, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	change := controllerutil.RemoveFinalizer
	if needed {
		change = controllerutil.AddFinalizer
	}
	if needed && !object.DeletionTimestamp.IsZero() {
		return nil // the API takes no new finalizer then
	}
	err := changeFinalizers(ctx, k.client, k.live, object, func(o client.Object) bool { return change(o, roleFinalizer) })
	return client.IgnoreNotFound(err)
}
