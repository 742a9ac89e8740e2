package controller

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// published describes what a reconcile has published.
type published struct {
	// tunnel is the Tunnel for which the routes were published; "" if they were not.
	tunnel types.UID
	// settled reports whether no hostname waits for a change of the tunnel's configuration.
	settled bool
}

// publish publishes the routes for Envoy, if the Gateway is accepted and its Tunnel has
// Envoys, unless a newer controller version serves the Tunnel. If Access settings or
// the data plane change, the Envoys have the routes before the tunnel's configuration
// changes.
func (r *run) publish(ctx context.Context, object *v1alpha1.Tunnel) (done published, err error) {
	if tunnel.IsNewer(object) {
		r.process.envoys.withhold(r.key.NamespacedName)
		return done, nil
	}
	plane := r.decision.Envoy(object)
	if plane == nil {
		isUnused := object != nil && !tunnel.UsesIdentity(object) || object == nil && !servesWithEnvoy(r, object)
		if isUnused && r.process.envoys.hasPublished(r.key.NamespacedName) {
			r.process.envoys.remove(r.key.NamespacedName) // the Tunnel was replaced, or its data plane has changed
		}
		return done, nil
	}
	if plane.Configuration == nil {
		return done, nil
	}
	if r.holdsTable(plane.Result, object) {
		return done, nil
	}
	ctx, end := r.process.observer.span(ctx, "publish", r.key)
	done.tunnel = object.UID
	done.settled, err = r.process.envoys.publish(ctx, r, plane, object, r.observe(plane, object))
	end(err, attribute.Bool("envoy.settled", done.settled))
	return done, err
}

// publishAgain publishes the routes after the tunnel's lifecycle, if it has created the
// Tunnel object, if hostnames waited for the configuration that it has written, or if
// it has found another configuration, which stays in effect if the write then fails.
func (r *run) publishAgain(ctx context.Context, first published) error {
	m := r.tunnel
	if plane := r.decision.Envoy(m.object); plane != nil && m.object.UID == first.tunnel && first.settled {
		if last := r.observe(plane, m.object).Last; last == nil || plane.Configuration == nil || plane.Has(last.Hash()) {
			return nil
		}
	}
	_, err := r.publish(ctx, m.object)
	return err
}
