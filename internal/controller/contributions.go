package controller

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// contributions records which namespaces cause writes to a tunnel's configuration.
type contributions struct {
	// written is the configuration as last written; nil if it is unknown.
	written *ingress.Digest
	// plane is the data plane that written is for.
	plane  v1alpha1.DataPlane
	recent tunnel.Contributions
	// reported is when the last event about too many changes was emitted.
	reported tunnel.Instant
}

// recordWrite records an attempt to write the desired configuration. A repeated attempt
// after a failure, and reverting an external change, have no contributors.
func (r *run) recordWrite(s tunnel.Step) {
	namespaces := r.recordInEffect(s.Hash)
	r.tunnel.contributions.recent = r.tunnel.contributions.recent.Add(r.process.clock.uptime(), namespaces)
	r.tunnel.activity.changedNamespaces = append(r.tunnel.activity.changedNamespaces, namespaces...)
}

// recordInEffect records that the tunnel has the configuration with the hash, and
// returns the namespaces whose objects have changed since the last call. A data plane
// change has no contributors.
func (r *run) recordInEffect(hash string) []string {
	p := r.decision.Plane(r.tunnel.object)
	if other := r.decision.Other(r.tunnel.object); other.Has(hash) {
		p = other
	}
	written, plane := p.Digest(r.key.Namespace), p.Result.DataPlane
	before, planeBefore := r.tunnel.contributions.written, r.tunnel.contributions.plane
	r.tunnel.contributions.written, r.tunnel.contributions.plane = written, plane
	if before == nil || plane != planeBefore {
		return nil // without a digest, an earlier process wrote the configuration
	}
	return before.ChangedNamespaces(written)
}

// changedNamespaces returns the namespaces whose objects have changed since the last write.
func (r *run) changedNamespaces() []string {
	current := r.decision.Plane(r.tunnel.object)
	if r.tunnel.contributions.written == nil || current.Result.DataPlane != r.tunnel.contributions.plane {
		return nil
	}
	return r.tunnel.contributions.written.ChangedNamespaces(current.Digest(r.key.Namespace))
}

// reportThrottling emits an event that names the namespaces whose objects keep changing,
// unless there was one within the window that it describes.
func (r *run) reportThrottling(f tunnel.Facts) {
	c := &r.tunnel.contributions
	if c.reported.IsSet() && c.reported.Since(f.Uptime) < tunnel.ContributionWindow {
		return
	}
	c.reported = tunnel.At(f.Uptime)
	r.process.notify.emitStep(r.gateway, f.Object, *c.recent.Event(f.Uptime, f.Desired.Updates))
}
