package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
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
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// keeper keeps objects of a kind while a Gateway's tunnel needs them: without
// the account and its API token, no tunnel can be deleted.
type keeper struct {
	client         client.Client
	live           client.Reader
	controllerName gatewayv1.GatewayController
	// empty returns an object of the kind without content.
	empty func(types.NamespacedName) client.Object
	// of returns which object of the kind the account of a Gateway needs, given
	// the TunnelConfiguration of its class; empty for none.
	of func(*v1alpha1.TunnelConfiguration) types.NamespacedName

	mu   sync.Mutex
	kept map[types.NamespacedName]bool
}

// setupKeepers keeps the Secrets with API tokens, and the TunnelConfigurations
// that name the account.
func setupKeepers(m manager.Manager, controllerName gatewayv1.GatewayController, a *accounts) error {
	secrets := &keeper{
		client: m.GetClient(), live: m.GetAPIReader(), controllerName: controllerName, kept: map[types.NamespacedName]bool{},
		empty: func(name types.NamespacedName) client.Object { return secretMetadata(name) },
		of: func(c *v1alpha1.TunnelConfiguration) types.NamespacedName {
			if c == nil {
				return a.flags.Of(nil).Secret
			}
			return a.flags.Of(&gateway.Settings{Spec: c.Spec, AccountNamespace: c.Namespace}).Secret
		},
	}
	err := builder.ControllerManagedBy(m).Named("credentials").
		WatchesMetadata(&corev1.Secret{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.NewPredicateFuncs(secrets.concerns))).
		Watches(&v1alpha1.TunnelConfiguration{}, handler.EnqueueRequestsFromMapFunc(secrets.all)).
		Watches(&gatewayv1.Gateway{}, handler.EnqueueRequestsFromMapFunc(secrets.all), builder.WithPredicates(needsChanged)).
		Watches(&gatewayv1.GatewayClass{}, handler.EnqueueRequestsFromMapFunc(secrets.all), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(secrets)
	if err != nil {
		return err
	}
	configurations := &keeper{
		client: m.GetClient(), live: m.GetAPIReader(), controllerName: controllerName, kept: map[types.NamespacedName]bool{},
		empty: func(types.NamespacedName) client.Object { return &v1alpha1.TunnelConfiguration{} },
		of: func(c *v1alpha1.TunnelConfiguration) types.NamespacedName {
			if c == nil || c.Spec.Account == nil {
				return types.NamespacedName{}
			}
			return client.ObjectKeyFromObject(c)
		},
	}
	return builder.ControllerManagedBy(m).Named("accounts").
		Watches(&v1alpha1.TunnelConfiguration{}, &handler.EnqueueRequestForObject{}).
		Watches(&gatewayv1.Gateway{}, handler.EnqueueRequestsFromMapFunc(configurations.all), builder.WithPredicates(needsChanged)).
		Watches(&gatewayv1.GatewayClass{}, handler.EnqueueRequestsFromMapFunc(configurations.all), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(configurations)
}

// concerns reports whether the object is needed, or was.
func (k *keeper) concerns(object client.Object) bool {
	name := client.ObjectKeyFromObject(object)
	if controllerutil.ContainsFinalizer(object, k.finalizer()) {
		k.mu.Lock()
		k.kept[name] = true
		k.mu.Unlock()
		return true
	}
	needed, err := k.needed(context.Background())
	return err == nil && needed[name]
}

// all returns every object that is needed, and those that were.
func (k *keeper) all(ctx context.Context, _ client.Object) []reconcile.Request {
	needed, err := k.needed(ctx)
	if err != nil {
		return nil // the cache is read, so this cannot be
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for name := range k.kept {
		needed[name] = true
	}
	var requests []reconcile.Request
	for name := range needed {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	return requests
}

// needsChanged: which Gateways are held shows in their finalizers, and what
// they need depends on their class.
var needsChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*gatewayv1.Gateway), e.ObjectNew.(*gatewayv1.Gateway)
	return controllerutil.ContainsFinalizer(before, state.Finalizer) != controllerutil.ContainsFinalizer(after, state.Finalizer) ||
		before.Spec.GatewayClassName != after.Spec.GatewayClassName
}}

// Reconcile puts the finalizer on the object, or takes it off.
func (k *keeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	object := k.empty(request.NamespacedName)
	if err := k.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	all, err := k.needed(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	needed, has := all[request.NamespacedName], controllerutil.ContainsFinalizer(object, k.finalizer())
	k.mu.Lock()
	if k.kept[request.NamespacedName] = needed; !needed {
		delete(k.kept, request.NamespacedName)
	}
	k.mu.Unlock()
	if needed == has || needed && !object.GetDeletionTimestamp().IsZero() { // the API takes no new finalizer then
		return reconcile.Result{}, nil
	}
	change := controllerutil.RemoveFinalizer
	if needed {
		change = controllerutil.AddFinalizer
	}
	err = changeFinalizers(ctx, k.client, k.live, object, func(o client.Object) bool { return change(o, k.finalizer()) })
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// needed returns the objects that the accounts of the Gateways that are held
// need.
func (k *keeper) needed(ctx context.Context) (map[types.NamespacedName]bool, error) {
	var list gatewayv1.GatewayList
	if err := k.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("looking for Gateways that need an account: %w", err)
	}
	needed := map[types.NamespacedName]bool{}
	for i := range list.Items {
		if !heldBy(k.controllerName, &list.Items[i]) {
			continue
		}
		configuration, err := k.configuration(ctx, &list.Items[i])
		if err != nil {
			return nil, err
		}
		if name := k.of(configuration); name.Name != "" {
			needed[name] = true
		}
	}
	return needed, nil
}

// configuration returns the TunnelConfiguration of the Gateway's class, or nil.
func (k *keeper) configuration(ctx context.Context, g *gatewayv1.Gateway) (*v1alpha1.TunnelConfiguration, error) {
	class := &gatewayv1.GatewayClass{}
	if err := k.client.Get(ctx, types.NamespacedName{Name: string(g.Spec.GatewayClassName)}, class); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	name, ok := gateway.ClassParameters(class)
	if !ok {
		return nil, nil
	}
	configuration := &v1alpha1.TunnelConfiguration{}
	if err := k.client.Get(ctx, name, configuration); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return configuration, nil
}

// finalizer has the controller's name in it: controllers of other names may
// use the same objects.
func (k *keeper) finalizer() string {
	sum := sha256.Sum256([]byte(k.controllerName))
	return "tunnelgateway.dev/credentials-" + hex.EncodeToString(sum[:4])
}
