package plan

import (
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
)

// TenantUse is how much one tenant uses of each limit of a Gateway on tenants.
type TenantUse struct {
	Tenant
	// Text is the namespace, or the label of several namespaces with its value.
	Text string
	// First reports whether the tenant is that of the Gateway. The Gateway's limit on
	// listeners applies to it, but none of the others.
	First bool
	// Uses are in the order of [Gateway.Limits], with the same names for each tenant. The
	// Limit is 0 if it does not apply to the tenant.
	Uses []Limit
}

// TenantUses returns what each tenant uses; nothing if the settings are not valid.
func (g *Gateway) TenantUses() []TenantUse {
	u := g.result.Usage
	if u == nil {
		return nil
	}
	all := make([]TenantUse, len(u.Tenants))
	for i, t := range u.Tenants {
		all[i] = TenantUse{Tenant: g.Tenants[i], Text: describeTenant(t.Tenant, u.Limits.TenantLabel), First: t.Tenant == u.First}
		all[i].Uses = all[i].uses(g.Limits)
	}
	return all
}

// uses returns the tenant's use of each limit on tenants.
func (t *TenantUse) uses(all []Limit) []Limit {
	var uses []Limit
	for _, l := range all {
		switch limits.Name(l.Name) {
		case limits.ListenersPerNamespace:
			l.Used = t.Listeners
		case limits.RulesPerNamespace:
			l.Used = t.Rules
		case limits.ExpressionsPerNamespace:
			l.Used = t.Instructions
		default:
			continue // a limit on all tenants, or on a hostname
		}
		if t.First && limits.Name(l.Name) != limits.ListenersPerNamespace {
			l.Limit = 0
		}
		uses = append(uses, Limit{Name: l.Name, Used: l.Used, Limit: l.Limit, Tenant: t.Text})
	}
	return uses
}

// Refused returns the routes and listeners of the Gateway that are not accepted because they
// exceed a limit, with the messages of their conditions.
func (g *Gateway) Refused() []Remark {
	var all []Remark
	for _, l := range g.resultListeners() {
		if p := l.Rejected; p != nil && p.Reason == conditions.ReasonLimitExceeded {
			all = append(all, Remark{newOwner(l.Owner), "listener " + string(l.Spec.Name) + ": " + p.Message})
		}
	}
	for _, route := range g.result.Routes {
		for i := range route.Parents {
			if p := route.Parents[i].Rejected; p != nil && p.Reason == conditions.ReasonLimitExceeded {
				all = append(all, Remark{ownerOf(route), p.Message})
				break
			}
		}
	}
	return all
}
