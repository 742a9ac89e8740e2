package controller

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// published describes the publication of a reconcile.
type published struct {
	// tunnel is the Tunnel for which the routes were published; "" if they were not.
	tunnel types.UID
	// settled reports whether no hostname waits for a change of the tunnel's configuration.
	settled bool
}

// publish publishes the routes for Envoy, if the Gateway is accepted and its Tunnel has Envoys,
// unless a newer version of the controller serves the Tunnel. If the Access of hostnames or the
// data plane changes, the Envoys have the routes before the tunnel's configuration changes.
func (r *reconciler) publish(ctx context.Context, t target, object *v1alpha1.Tunnel) (p published, err error) {
	if tunnel.IsNewer(object) {
		r.envoys.withhold(t.key.NamespacedName)
		return p, nil
	}
	plane := t.decision.Envoy(object)
	if plane == nil {
		isUnused := object != nil && !tunnel.UsesIdentity(object) || object == nil && !servesWithEnvoy(t, object)
		if isUnused && r.envoys.hasPublished(t.key.NamespacedName) {
			r.envoys.remove(t.key.NamespacedName) // the Tunnel was replaced, or its data plane has changed
		}
		return p, nil
	}
	if plane.Configuration == nil {
		return p, nil
	}
	ctx, end := r.observer.span(ctx, "publish", t.key)
	p.tunnel = object.UID
	p.settled, err = r.envoys.publish(ctx, t, plane, object, observe(plane, object, r.lifecycle.tunnelFor(t.key).memory))
	if !p.settled || r.envoys.expectsAcknowledgements(t, object) {
		r.envoys.server.Await(ctx, t.key.NamespacedName)
	}
	end(err, attribute.Bool("envoy.settled", p.settled))
	return p, err
}

// publishAgain publishes the routes after the lifecycle of the tunnel, if it has created the
// Tunnel object, if hostnames waited for the configuration that it has written, or if it has
// found another configuration, which stays in effect if the write then fails.
func (r *reconciler) publishAgain(ctx context.Context, t target, first published) error {
	m := r.lifecycle.tunnelFor(t.key)
	if plane := t.decision.Envoy(m.object); plane != nil && m.object.UID == first.tunnel && first.settled {
		if last := observe(plane, m.object, m.memory).Last; last == nil || plane.Configuration == nil || plane.Has(last.Hash()) {
			return nil
		}
	}
	_, err := r.publish(ctx, t, m.object)
	return err
}
