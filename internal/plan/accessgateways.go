package plan

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// AccessGateway is what the applications of Cloudflare Access for a Gateway depend on.
type AccessGateway struct {
	access.Gateway
	// Settings are those of the GatewayClass.
	Settings settings.Applications
	// AccountID is the account that owns the tunnel and the applications; empty if it is not
	// known.
	AccountID string
}

// AccessGateways returns what the applications for the Gateways depend on, in their order.
func (p *Plan) AccessGateways() []AccessGateway {
	all := make([]AccessGateway, 0, len(p.Gateways))
	for i := range p.Gateways {
		g := p.newAccessGateway(&p.Gateways[i])
		a := AccessGateway{Gateway: g.Gateway, Settings: g.settings, AccountID: g.account}
		if a.AccountID == unknownAccount {
			a.AccountID = ""
		}
		all = append(all, a)
	}
	return all
}
