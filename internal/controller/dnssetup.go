package controller

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

func newDNSBook(d dependencies, o Options) *dnsBook {
	return &dnsBook{
		undecided: newUndecided(d, o),
		zones:     newZones(newClassSettings(d, o, settings.ClassDNS, credentials.Source.ForDNS)),
		enqueue:   d.enqueueZone, requeue: d.requeue, entries: map[types.NamespacedName]*dnsEntry{},
	}
}

func newZoneReconciler(p *process, d dependencies, o Options, key *signingKey) *zoneReconciler {
	return &zoneReconciler{
		book: p.dns, zones: p.dns.zones,
		open: o.OpenDNS, tokens: newAPITokens(d),
		key:     key,
		objects: p.objects, options: p.options.Tunnel, metrics: o.Metrics, clock: d.clock,
	}
}

// watches returns watches for the kinds that affect a zone, apart from the kinds that affect
// Gateways.
func (r *zoneReconciler) watches() []watch[zoneKey] {
	return []watch[zoneKey]{
		{kinds.GatewayClass, enqueueKeys(r.fromClass), nil},
		{kinds.TunnelConfiguration, enqueueKeys(r.fromClass), nil},
		{kinds.Secret, enqueueKeys(r.fromSecret), nil},
		{kinds.Tunnel, enqueueKeys(r.fromTunnel), predicate.AnnotationChangedPredicate{}},
	}
}

// fromClass maps a GatewayClass or a TunnelConfiguration to the zones whose settings have
// changed.
func (r *zoneReconciler) fromClass(ctx context.Context, _ client.Object) ([]zoneKey, error) {
	return r.zones.refresh(ctx)
}

// fromSecret maps a Secret's metadata to the zones that use its token or its key.
func (r *zoneReconciler) fromSecret(_ context.Context, secret *metav1.PartialObjectMetadata) ([]zoneKey, error) {
	name := client.ObjectKeyFromObject(secret)
	return r.zones.using(func(c zoneClass) bool { return name == r.key.name || c.sources.have(name) }), nil
}

// fromTunnel maps a Tunnel to the zones of the records that it requests to adopt.
func (r *zoneReconciler) fromTunnel(_ context.Context, t *v1alpha1.Tunnel) ([]zoneKey, error) {
	requests, _ := t.RequestedAdoptions() // the Gateway's reconcile reports an error
	var keys []zoneKey
	for _, request := range requests {
		keys = append(keys, zoneKey{t.Spec.AccountID, request.Zone})
	}
	return slices.Compact(keys), nil
}
