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
	recent  tunnel.Contributions
	// reported is the time of the last event about too many changes.
	reported tunnel.Instant
}

// recordWrite records an attempt to write the desired configuration. A repeated attempt
// after a failure, and the revert of an external change, have no contributors.
func (l *loop) recordWrite() {
	namespaces := l.recordInEffect()
	l.contributions.recent = l.contributions.recent.Add(l.clock.uptime(), namespaces)
	l.activity.changedNamespaces = append(l.activity.changedNamespaces, namespaces...)
}

// recordInEffect records that the tunnel has the desired configuration, and returns the
// namespaces whose objects have changed since the last call.
func (l *loop) recordInEffect() []string {
	newDigest := ingress.NewDigest
	if l.result.DataPlane == v1alpha1.DataPlaneEnvoy {
		newDigest = ingress.NewEnvoyDigest
	}
	written := newDigest(l.result.Table, l.key.Namespace)
	before := l.contributions.written
	if l.contributions.written = written; before == nil {
		return nil // the configuration was written by an earlier process
	}
	return before.ChangedNamespaces(written)
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
