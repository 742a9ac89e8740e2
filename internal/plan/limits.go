package plan

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// Limit is how much of one Gateway limit is used.
type Limit struct {
	// Name is a field in spec.limits, or a fixed limit.
	Name  string `json:"name"`
	Used  int    `json:"used"`
	Limit int    `json:"limit"`
	// Tenant is the tenant that uses the most; empty for a limit on all tenants.
	Tenant string `json:"tenant"`
	// Hostname is the hostname that uses the most; empty except for a limit on each
	// hostname.
	Hostname string `json:"hostname"`
}

// Tenant is how much of the limits one tenant uses.
type Tenant struct {
	// Name is a namespace, or the value of the label limits.tenantLabel.
	Name string `json:"name"`
	// Labeled reports whether Name is the label's value.
	Labeled          bool `json:"labeled"`
	Rules            int  `json:"rules"`
	Instructions     int  `json:"instructions"`
	Listeners        int  `json:"listeners"`
	RefusedRoutes    int  `json:"refusedRoutes"`
	RefusedListeners int  `json:"refusedListeners"`
}

// newLimits returns an empty list for nil.
func newLimits(u *gateway.Usage) []Limit {
	if u == nil {
		return []Limit{}
	}
	byLimit := u.ByLimit()
	all := make([]Limit, len(byLimit))
	for i, l := range byLimit {
		all[i] = Limit{Name: string(l.Name), Used: l.Used, Limit: l.Limit, Tenant: describeTenant(l.Tenant, u.Limits.TenantLabel), Hostname: l.Hostname}
	}
	return all
}

// newTenants returns an empty list for nil.
func newTenants(u *gateway.Usage) []Tenant {
	if u == nil {
		return []Tenant{}
	}
	all := make([]Tenant, len(u.Tenants))
	for i, t := range u.Tenants {
		all[i] = Tenant{
			Name: t.Name, Labeled: t.Labeled, Rules: t.Rules, Instructions: t.Instructions, Listeners: t.Listeners,
			RefusedRoutes: t.RefusedRoutes, RefusedListeners: t.RefusedListeners,
		}
	}
	return all
}

// describeTenant returns a namespace's name, or the label on several namespaces.
func describeTenant(t limits.Tenant, label string) string {
	if t.Labeled {
		return fmt.Sprintf("%s=%s", label, t.Name)
	}
	return t.Name
}

// writeLimits prints the limits that are in use in one line.
func (g *Gateway) writeLimits(out *terminal.Columns) {
	var parts []string
	for _, l := range g.Limits {
		if l.Used == 0 {
			continue
		}
		part := fmt.Sprintf("%s %d of %d", l.Name, l.Used, l.Limit)
		if user := cmp.Or(l.Tenant, l.Hostname); user != "" {
			part += fmt.Sprintf(" (%s)", user)
		}
		parts = append(parts, part)
	}
	if len(parts) > 0 {
		terminal.Printf(out, "Limits: %s\n", strings.Join(parts, ", "))
	}
}
