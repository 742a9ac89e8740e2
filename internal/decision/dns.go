package decision

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// DNS returns what the decision says about the Gateway's hostnames in DNS. t is the
// Tunnel, which can be nil, and o the outcome for it. The caller sets the fields Created,
// Class and Connected.
//
// No hostname is served unless the Gateway's configuration is in effect: its records are
// kept, and none is created.
func (d *Decision) DNS(t *v1alpha1.Tunnel, o tunnel.Outcome) dns.Gateway {
	g := dns.Gateway{NamespacedName: d.gateway, State: d.recordState(t), Tunnel: o.Tunnel}
	if t != nil && t.Status.TunnelID != "" {
		g.Tunnel = provider.TunnelID(t.Status.TunnelID)
	}
	g.Hostnames = d.Plane(t).Result.RecordHostnames(g.State == ownership.Accepted, o.State == tunnel.OutcomeInEffect)
	return g
}

// recordState returns what may happen to the records of a Gateway that exists.
func (d *Decision) recordState(t *v1alpha1.Tunnel) ownership.State {
	switch {
	case d.Paused(), t != nil && t.Status.Phase == v1alpha1.TunnelBlocked:
		return ownership.Frozen
	case d.Plane(t).Result.Rejected != nil:
		return ownership.Rejected
	default:
		return ownership.Accepted
	}
}
