package controller

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// contributions records which namespaces cause the writes of a tunnel's configuration.
type contributions struct {
	// written is the configuration as last written; nil if it is unknown.
	written *ingress.Digest
	// plane is the data plane of written.
	plane  v1alpha1.DataPlane
	recent tunnel.Contributions
	// reported is the time of the last event about too many changes.
	reported tunnel.Instant
}

// recordWrite records an attempt to write the desired configuration. A repeated attempt
// after a failure, and the revert of an external change, have no contributors.
func (l *loop) recordWrite(s tunnel.Step) {
	namespaces := l.recordInEffect(s.Hash)
	l.contributions.recent = l.contributions.recent.Add(l.clock.uptime(), namespaces)
	l.activity.changedNamespaces = append(l.activity.changedNamespaces, namespaces...)
}

// recordInEffect records that the tunnel has the configuration with the hash, and returns the
// namespaces whose objects have changed since the last call. A change of the data plane has
// no contributors.
func (l *loop) recordInEffect(hash string) []string {
	p := l.decision.Plane(l.object)
	if other := l.decision.Other(l.object); other.Has(hash) {
		p = other
	}
	written, plane := p.Digest(l.key.Namespace), p.Result.DataPlane
	before, planeBefore := l.contributions.written, l.contributions.plane
	l.contributions.written, l.contributions.plane = written, plane
	if before == nil || plane != planeBefore {
		return nil // without a digest, an earlier process wrote the configuration
	}
	return before.ChangedNamespaces(written)
}

// changedNamespaces returns the namespaces whose objects have changed since the last write.
func (l *loop) changedNamespaces() []string {
	current := l.decision.Plane(l.object)
	if l.contributions.written == nil || current.Result.DataPlane != l.contributions.plane {
		return nil
	}
	return l.contributions.written.ChangedNamespaces(current.Digest(l.key.Namespace))
}

// reportThrottling emits an event that names the namespaces whose objects keep changing,
// unless there was one within the window that it describes.
func (l *loop) reportThrottling(f tunnel.Facts) {
	c := &l.contributions
	if c.reported.IsSet() && c.reported.Since(f.Uptime) < tunnel.ContributionWindow {
		return
	}
	c.reported = tunnel.At(f.Uptime)
	l.notify.emitStep(l.gateway, f.Object, *c.recent.Event(f.Uptime, f.Desired.Updates))
}
