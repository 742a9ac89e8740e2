package decision

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// DNS returns what the decision says about the Gateway's hostnames in DNS. t is the
// Tunnel, which can be nil, and o the outcome for it. The caller sets the fields Created,
// Class and Connected.
func (d *Decision) DNS(*v1alpha1.Tunnel, tunnel.Outcome) dns.Gateway {
	return dns.Gateway{NamespacedName: d.gateway}
}
