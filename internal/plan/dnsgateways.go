package plan

import (
	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// DNSGateway is what the DNS records of a Gateway depend on.
type DNSGateway struct {
	dns.Gateway
	// Settings are the DNS settings of the GatewayClass.
	Settings settings.DNS
	// AccountID is the account that owns the tunnel and the zones; empty if it is not
	// known.
	AccountID string
	// ClusterID identifies the installation; empty if no cluster was read.
	ClusterID string
	// Status is what the Tunnel reports about DNS; nil if it reports nothing.
	Status *v1alpha1.TunnelDNSStatus
}

// DNSGateways returns what the DNS records of the Gateways depend on, in their order.
func (p *Plan) DNSGateways() []DNSGateway {
	all := make([]DNSGateway, 0, len(p.Gateways))
	for i := range p.Gateways {
		g := &p.Gateways[i]
		d := DNSGateway{Gateway: g.decision.DNS(g.facts.Object, g.outcome), Settings: g.result.DNS, ClusterID: p.tunnels.options.ClusterID}
		if g.class != nil {
			d.Class = g.class.Name
		}
		if g.facts.Object != nil {
			d.Status = g.facts.Object.Status.DNS
			if d.AccountID = g.facts.Object.Spec.AccountID; d.AccountID == unknownAccount {
				d.AccountID = ""
			}
		}
		all = append(all, d)
	}
	return all
}
