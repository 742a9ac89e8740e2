package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

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

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// credentialsKeeper keeps the Secret with the API token while a Gateway's
// tunnel needs it: without the token, no tunnel can be deleted.
type credentialsKeeper struct {
	client         client.Client
	live           client.Reader
	secret         types.NamespacedName // empty when the token is in none
	controllerName gatewayv1.GatewayController
}

func setupCredentialsKeeper(m manager.Manager, k *credentialsKeeper) error {
	return builder.ControllerManagedBy(m).
		Named("credentials").
		WatchesMetadata(&corev1.Secret{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.NewPredicateFuncs(k.concerns))).
		Watches(&gatewayv1.Gateway{}, handler.EnqueueRequestsFromMapFunc(k.fromGateway), builder.WithPredicates(finalizersChanged)).
		Complete(k)
}

// concerns reports whether the Secret is the one with the token, or was.
func (k *credentialsKeeper) concerns(secret client.Object) bool {
	return client.ObjectKeyFromObject(secret) == k.secret || controllerutil.ContainsFinalizer(secret, k.finalizer())
}

func (k *credentialsKeeper) fromGateway(context.Context, client.Object) []reconcile.Request {
	if k.secret.Name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: k.secret}}
}

// finalizersChanged: which Gateways are held shows in their finalizers.
var finalizersChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return controllerutil.ContainsFinalizer(e.ObjectOld, state.Finalizer) != controllerutil.ContainsFinalizer(e.ObjectNew, state.Finalizer)
}}

// Reconcile puts the finalizer on the Secret, or takes it off.
func (k *credentialsKeeper) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	secret := secretMetadata(request.NamespacedName)
	if err := k.client.Get(ctx, request.NamespacedName, secret); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	needed, err := k.needed(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	has := controllerutil.ContainsFinalizer(secret, k.finalizer())
	if needed == has || needed && !secret.DeletionTimestamp.IsZero() { // the API takes no new finalizer then
		return reconcile.Result{}, nil
	}
	change := controllerutil.RemoveFinalizer
	if needed {
		change = controllerutil.AddFinalizer
	}
	err = changeFinalizers(ctx, k.client, k.live, secret, func(o client.Object) bool { return change(o, k.finalizer()) })
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// needed reports whether the Secret has the token and a Gateway is held.
func (k *credentialsKeeper) needed(ctx context.Context, secret types.NamespacedName) (bool, error) {
	if secret != k.secret {
		return false, nil
	}
	var list gatewayv1.GatewayList
	if err := k.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("looking for Gateways that need the API token: %w", err)
	}
	for i := range list.Items {
		if heldBy(k.controllerName, &list.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

// finalizer has the controller's name in it: controllers of other names may
// use the same Secret.
func (k *credentialsKeeper) finalizer() string {
	sum := sha256.Sum256([]byte(k.controllerName))
	return "tunnelgateway.dev/credentials-" + hex.EncodeToString(sum[:4])
}
