package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// ensureConnectors applies the objects that run the connectors. It requires the token and
// a recorded configuration.
func ensureConnectors(f Facts) Step {
	recorded := f.Object.Status
	switch {
	case f.Desired == nil || recorded.TunnelID == "" || recorded.Configuration.Hash == "" || f.Token.State != TokenPresent:
		return Step{}
	case f.Desired.NeedsHTTP2 && !recorded.HTTP2 && !RunsEnvoy(f.Object) && f.Desired.DataPlane != v1alpha1.DataPlaneEnvoy:
		return Step{
			Action: Record, Record: f.statusWith(func(s *v1alpha1.TunnelStatus) { s.HTTP2 = true }),
			Event: newEvent(conditions.EventConnectorProtocol, "The connectors of tunnel %s now use HTTP/2, because the Gateway has a GRPCRoute and gRPC trailers are lost over QUIC.", recorded.TunnelID),
		}
	case !f.Connectors.Current:
		return f.attempt(TrackConnectors, Step{Action: RunConnectors})
	}
	return Step{}
}

// rolledOut reports whether every pod has the current settings and token. With
// connector.enabled: false, no pod must be left.
func (c Connectors) rolledOut() bool { return c.RolledOut || !c.Exist && c.Pods == 0 }

// DependsOnPods reports whether the next decision depends on connector pods: while the
// Tunnel may retire, while its token is rotated, and while its data plane changes.
func DependsOnPods(f Facts) bool {
	remaining, scheduled := f.untilScheduled()
	return f.Gateway.State != GatewayExists || f.Memory.MissingSince.IsSet() || f.Object.Status.Token.Phase != "" ||
		f.Object.Status.DataPlaneChange != nil || f.rotationRequested() || scheduled && remaining <= 0
}
