package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

func newAccessBook(d dependencies, o Options) *accessBook {
	return &accessBook{
		undecided: newUndecided(d, o),
		accounts:  newAccessAccounts(newClassSettings(d, o, settings.ClassApplications, credentials.Source.ForAccess)),
		enqueue:   d.enqueueAccount, requeue: d.requeue, entries: map[types.NamespacedName]*accessEntry{},
	}
}

func newAccountReconciler(p *process, d dependencies, o Options, key *signingKey) *accountReconciler {
	return &accountReconciler{
		book: p.access, accounts: p.access.accounts, open: o.OpenAccess, tokens: newAPITokens(d), key: key,
		objects: p.objects, options: p.options.Tunnel, metrics: o.Metrics, clock: d.clock,
	}
}

// watches returns watches for the kinds that affect an account, apart from the kinds that
// affect Gateways.
func (r *accountReconciler) watches() []watch[accountKey] {
	return []watch[accountKey]{
		{kinds.GatewayClass, enqueueKeys(r.fromClass), nil},
		{kinds.TunnelConfiguration, enqueueKeys(r.fromClass), nil},
		{kinds.Secret, enqueueKeys(r.fromSecret), nil},
		{kinds.Tunnel, enqueueKeys(r.fromTunnel), predicate.AnnotationChangedPredicate{}},
	}
}

// fromClass maps a GatewayClass or a TunnelConfiguration to the accounts whose settings have
// changed.
func (r *accountReconciler) fromClass(ctx context.Context, _ client.Object) ([]accountKey, error) {
	return r.accounts.refresh(ctx)
}

// fromSecret maps a Secret's metadata to the accounts that use its token or its key.
func (r *accountReconciler) fromSecret(_ context.Context, secret *metav1.PartialObjectMetadata) ([]accountKey, error) {
	name := client.ObjectKeyFromObject(secret)
	return r.accounts.using(func(c accessClass) bool { return name == r.key.name || c.sources.have(name) }), nil
}

// fromTunnel maps a Tunnel to the account of the applications that it requests to adopt.
func (r *accountReconciler) fromTunnel(_ context.Context, t *v1alpha1.Tunnel) ([]accountKey, error) {
	if requests, _ := t.RequestedApplicationAdoptions(); len(requests) == 0 { // the Gateway's reconcile reports an error
		return nil, nil
	}
	return r.accounts.managed(t.Spec.AccountID), nil
}
