package settings

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The defaults in spec.limits.
const (
	defaultTunnelsPerNamespace   = 10
	defaultRulesPerTunnel        = 1000
	defaultEnvoyRoutes           = 20_000
	defaultRoutesPerHostname     = 1000
	defaultListenersPerNamespace = 64
	defaultUpdateBurst           = 20
	defaultUpdateInterval        = 5 * time.Second
)

// Limits are the limits that a GatewayClass sets for each of its Gateways, with defaults.
type Limits struct {
	// TunnelsPerNamespace limits the Tunnels for Gateways in one namespace.
	TunnelsPerNamespace int
	// TenantLabel is the namespace label whose value identifies a tenant. It is empty
	// when each namespace is its own tenant.
	TenantLabel string
	// RulesPerTunnel limits the rules on one Gateway.
	RulesPerTunnel int
	// RulesPerNamespace limits the rules of one tenant on one Gateway, or is 0 for no
	// limit except RulesPerTunnel.
	RulesPerNamespace int
	// RoutesPerHostname limits the Envoy routes for one hostname.
	RoutesPerHostname int
	// ListenersPerNamespace limits the ListenerSet entries that one tenant may have on
	// one Gateway.
	ListenersPerNamespace int
	// ExpressionsRefused reports whether routes must not use regular expressions.
	ExpressionsRefused bool
	// UpdateBurst is how many writes to a tunnel configuration may follow each other, and
	// UpdateInterval the time after which one more write is permitted.
	UpdateBurst    int
	UpdateInterval time.Duration
}

// Limits returns the GatewayClass limits. It accepts nil settings, for which it returns
// the defaults.
func (s *Settings) Limits() Limits {
	if s == nil {
		return newLimits(nil, s.DataPlane())
	}
	return newLimits(s.Spec.Limits, s.DataPlane())
}

// ClassLimits returns the GatewayClass limits for a Gateway with the data plane, even
// when the Gateway settings are not valid. It returns false when the GatewayClass
// settings are not valid.
func ClassLimits(in Input, plane v1alpha1.DataPlane) (Limits, bool) {
	c, problem := in.class()
	if problem != nil {
		return Limits{}, false
	}
	return newLimits(c.spec.Limits, plane), true
}

// ForbidsPausing reports whether the GatewayClass forbids pausing its Gateways, even when
// the Gateway settings are not valid. A GatewayClass whose settings are not valid forbids
// nothing.
func ForbidsPausing(in Input) bool {
	c, problem := in.class()
	return problem == nil && ptr.Deref(c.spec.Pausing, v1alpha1.PausingAllowed) == v1alpha1.PausingForbidden
}

func newLimits(set *v1alpha1.Limits, plane v1alpha1.DataPlane) Limits {
	spec := ptr.Deref(set, v1alpha1.Limits{})
	rules := int32(defaultRulesPerTunnel)
	if plane == v1alpha1.DataPlaneEnvoy {
		rules = defaultEnvoyRoutes
	}
	updates := ptr.Deref(spec.ConfigurationUpdates, v1alpha1.ConfigurationUpdates{})
	return Limits{
		TunnelsPerNamespace:   int(ptr.Deref(spec.TunnelsPerNamespace, defaultTunnelsPerNamespace)),
		TenantLabel:           ptr.Deref(spec.TenantLabel, ""),
		RulesPerTunnel:        int(ptr.Deref(spec.RulesPerTunnel, rules)),
		RulesPerNamespace:     int(ptr.Deref(spec.RulesPerNamespace, 0)),
		RoutesPerHostname:     int(ptr.Deref(spec.RoutesPerHostname, defaultRoutesPerHostname)),
		ListenersPerNamespace: int(ptr.Deref(spec.ListenersPerNamespace, defaultListenersPerNamespace)),
		ExpressionsRefused:    ptr.Deref(spec.RegularExpressions, v1alpha1.RegularExpressionsAllowed) == v1alpha1.RegularExpressionsRefused,
		UpdateBurst:           int(ptr.Deref(updates.Burst, defaultUpdateBurst)),
		UpdateInterval:        secondsOr(updates.Interval, defaultUpdateInterval),
	}
}
