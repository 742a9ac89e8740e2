package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// expose decides how the listeners serve the hostnames whose Access settings change.
func (p *publication) expose(plane *decision.Plane, object *v1alpha1.Tunnel, observed ingress.Observed, uptime time.Duration) (ingress.AccessChanges, ingress.Exposure) {
	changes, last := p.changes, p.resources
	if p.tunnel != object.UID {
		changes, last = ingress.AccessChanges{}, nil // its Envoys have nothing from this process
	}
	return changes.Next(plane.Result.Table, *plane.Configuration, observed, last, uptime)
}

// observe returns what is known about the tunnel's configuration, with the Cloudflare
// responses in memory.
func (r *run) observe(p *decision.Plane, object *v1alpha1.Tunnel) ingress.Observed {
	memory := r.tunnel.memory
	remote, recorded := memory.Remote.Configuration, object.Status.Configuration
	observed := ingress.Observed{
		Known: remote.Known,
		Applied: p.Has(recorded.Hash) && recorded.Late == "" &&
			conditions.TypeTunnelConfigurationApplied.IsTrue(object.Status.Conditions),
		Elsewhere: !leadsToEnvoy(object) || object.Status.TunnelID == "",
		OpenSince: r.memory.access.exposure.OpenSince(),
	}
	if !remote.Confirmed {
		observed.Late = memory.LateWrites.Hashes
	}
	if remote.Hash != "" {
		observed.Last = &remote.Configuration
	}
	return observed
}

// leadsToEnvoy reports whether the tunnel's configuration can lead requests to Envoy.
func leadsToEnvoy(object *v1alpha1.Tunnel) bool {
	change := object.Status.DataPlaneChange
	return tunnel.RecordedDataPlane(object) == v1alpha1.DataPlaneEnvoy || change != nil && change.Phase == v1alpha1.DataPlaneSwitching
}

// exposure returns how the listeners serve the hostnames in the last publication.
func (e *envoys) exposure(gateway types.NamespacedName) ingress.Exposure {
	p := e.memories.findPublication(gateway)
	if p == nil {
		return ingress.Exposure{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exposure
}

// closingDelay returns the time until a hostname on the Gateway closes that became
// protected and is still open; 0 if there is none.
func (e *envoys) closingDelay(gateway types.NamespacedName) time.Duration {
	until := e.exposure(gateway).Until
	if until == 0 {
		return 0
	}
	return max(until-e.uptime(), time.Millisecond)
}

// closeOverdue closes the Gateway's hostnames that became protected and have been open
// for too long since then. It needs no decision, because the Gateway can be invalid or
// unknown meanwhile.
func (e *envoys) closeOverdue(ctx context.Context, gateway types.NamespacedName) {
	p := e.memories.findPublication(gateway)
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exposure.Until == 0 || e.uptime() < p.exposure.Until {
		return
	}
	changes, exposure := p.changes.Close(p.exposure, e.uptime())
	resources := p.resources.Close(exposure.Closed)
	err := e.server.Publish(xds.Publication{
		Gateway: gateway, Tunnel: p.tunnel, Sequence: p.sequence, WantsAcknowledgement: !exposure.IsSettled(),
		Listeners: envoy.Listeners(p.ready, resources.Telemetry), Resources: resources, Secrets: p.client.resources(), Assignments: p.assignments(resources),
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "failed to close hostnames that require Access", "hostnames", exposure.Closed)
		return
	}
	p.resources, p.changes, p.exposure = resources, changes, exposure
}
