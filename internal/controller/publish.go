package controller

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// published describes the publication of a reconcile.
type published struct {
	// tunnel is the Tunnel for which the routes were published; "" if they were not.
	tunnel types.UID
	// moving reports whether hostnames move from one listener to the other.
	moving bool
	// blind reports whether the configuration of the tunnel was not known.
	blind bool
}

// publish publishes the routes for Envoy, if the Gateway is accepted and its Tunnel has Envoys.
// If hostnames move from one listener to the other, or the data plane changes to Envoy, the
// Envoys have the routes before the tunnel's configuration changes. current is the configuration
// of the tunnel, or nil if it is unknown.
func (r *reconciler) publish(ctx context.Context, t target, object *v1alpha1.Tunnel, current *provider.Configuration) (p published, err error) {
	plan := t.envoy(object)
	if plan == nil {
		isUnused := object != nil && !tunnel.UsesIdentity(object) || object == nil && !t.isFor(v1alpha1.DataPlaneEnvoy)
		if isUnused && r.envoys.hasPublished(t.key.NamespacedName) {
			r.envoys.remove(t.key.NamespacedName) // the Tunnel was replaced, or its data plane has changed
		}
		return p, nil
	}
	if plan.configuration == nil {
		return p, nil
	}
	ctx, end := r.observer.span(ctx, "publish", t.key)
	p = published{tunnel: object.UID, blind: current == nil}
	p.moving, err = r.envoys.publish(ctx, t, *plan, object, current)
	if p.moving || r.envoys.expectsAcknowledgements(t, object) {
		r.envoys.server.Await(ctx, t.key.NamespacedName)
	}
	end(err, attribute.Bool("envoy.moving", p.moving))
	return p, err
}

// publishAgain publishes the routes after the lifecycle of the tunnel, if it has created the
// Tunnel object, or if hostnames move: once the tunnel has the desired configuration, one
// listener serves each of them. It also publishes them if the lifecycle has found that the
// tunnel has another configuration, which stays in effect if the write then fails.
func (r *reconciler) publishAgain(ctx context.Context, t target, first published) error {
	object, current := r.lifecycle.tunnelFor(t.key).object, r.lifecycle.currentConfiguration(t.key)
	if current == nil && first.blind {
		current = r.lifecycle.lastConfiguration(t.key)
	}
	plan := t.envoy(object)
	if plan == nil {
		_, err := r.publish(ctx, t, object, current)
		return err
	}
	differs := current != nil && plan.configuration != nil && !plan.has(current.Hash())
	isDue := first.moving || first.blind && differs
	if object.UID == first.tunnel && !isDue {
		return nil
	}
	_, err := r.publish(ctx, t, object, current)
	return err
}
