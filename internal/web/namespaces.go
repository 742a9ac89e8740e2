package web

import (
	"cmp"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// namespacesContent is what templates/namespaces.html shows.
type namespacesContent struct {
	// Gateway is the chosen one, or empty for all.
	Gateway  string
	Names    []string // from all Gateways
	Gateways []gatewayUse
}

// gatewayUse is a Gateway's limits and what the namespaces use.
type gatewayUse struct {
	Name   string
	Limits []plan.Limit
	// TenantLimits names the limits on each tenant.
	TenantLimits []string
	// Tenants are the first tenants, as far as Part says: those above a limit first.
	Tenants []plan.TenantUse
	Part    part
	// Refused are routes and listeners that exceed a limit, as far as RefusedPart says.
	Refused     []plan.Remark
	RefusedPart part
}

// namespaces shows each Gateway's limits and what each namespace uses.
func namespaces(v *visit) (any, error) {
	c := namespacesContent{Gateway: v.URL.Query().Get("gateway")}
	for i := range v.Plan.Gateways {
		g := &v.Plan.Gateways[i]
		name := g.Namespace + "/" + g.Name
		c.Names = append(c.Names, name)
		if c.Gateway == "" || c.Gateway == name {
			c.Gateways = append(c.Gateways, v.gatewayUse(name, g))
		}
	}
	return c, nil
}

func (v *visit) gatewayUse(name string, g *plan.Gateway) gatewayUse {
	tenants, refused := g.TenantUses(), g.Refused()
	slices.SortStableFunc(tenants, func(a, b plan.TenantUse) int {
		return cmp.Compare(b.RefusedRoutes+b.RefusedListeners, a.RefusedRoutes+a.RefusedListeners)
	})
	use := gatewayUse{Name: name, Limits: g.Limits, Part: v.part(len(tenants)), RefusedPart: v.part(len(refused))}
	if len(tenants) > 0 {
		for _, limit := range tenants[0].Uses {
			use.TenantLimits = append(use.TenantLimits, limit.Name)
		}
	}
	use.Tenants, use.Refused = tenants[:use.Part.Shown], refused[:use.RefusedPart.Shown]
	return use
}
