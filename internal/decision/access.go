package decision

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
)

// Access returns what the decision says about the applications of Cloudflare Access for the
// Gateway's hostnames. t is the Tunnel, which can be nil. The caller sets the fields Created,
// Class, InEffect and InEffectKnown.
func (d *Decision) Access(t *v1alpha1.Tunnel) access.Gateway {
	result := d.Plane(t).Result
	return access.Gateway{
		NamespacedName: d.gateway, State: d.recordState(t), HasTunnel: t != nil,
		DemandsUnknown: result.Demanded.Unknown, Demands: result.AccessDemands(), Hostnames: result.AccessHostnames(),
	}
}
