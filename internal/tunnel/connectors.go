package tunnel

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// connectors runs what connects the tunnel: a tunnel without a configuration of
// this controller has nothing to serve, and a connector needs the token.
func connectors(f Facts) Step {
	recorded := f.Object.Status
	switch {
	case f.Desired == nil || recorded.TunnelID == "" || recorded.Configuration.Hash == "" || f.Token.State != TokenPresent:
		return Step{}
	case f.Desired.NeedsHTTP2 && !recorded.HTTP2:
		return Step{
			Action: Record, Record: f.record(func(s *v1alpha1.TunnelStatus) { s.HTTP2 = true }),
			Event: newEvent(EventHTTP2, "The connectors of tunnel %s use HTTP/2 from now on, because the Gateway has a GRPCRoute and QUIC loses the trailers of gRPC.", recorded.TunnelID),
		}
	case !f.Connectors.Current:
		return f.attempt(TrackConnectors, Step{Action: RunConnectors})
	}
	return Step{}
}
