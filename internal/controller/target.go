package controller

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// target is the Gateway that a loop of decisions works on, and its desired state.
type target struct {
	key state.Key
	// gateway is nil when the cache does not contain the Gateway.
	gateway *gatewayv1.Gateway
	state   tunnel.Gateway
	// planned is the decision for the data plane in effect, from which the statuses follow.
	planned
	// other is the decision for the data plane that is not in effect. It is nil unless
	// [tunnel.NeedsBoth].
	other *planned
	// snapshot contains the objects whose status entries are removed when the Tunnel
	// retires.
	snapshot *gateway.Snapshot
}

// planned is the decision about a Gateway for one data plane.
type planned struct {
	// result is nil when the controller does not manage the Gateway.
	result *gateway.Result
	// configuration is the desired configuration of the tunnel; nil when the Gateway is
	// not accepted or not managed. hash is its hash.
	configuration *provider.Configuration
	hash          string
	// excess is why a Gateway that Envoy serves cannot change to this data plane; empty if it can.
	excess string
}

// newPlanned returns the decision with the configuration for its data plane.
func newPlanned(result *gateway.Result) planned {
	p := planned{result: result, configuration: ingress.ConfigurationFor(result.DataPlane, result.Table)}
	if p.configuration != nil {
		p.hash = p.configuration.Hash()
	}
	return p
}

// isFor reports whether the decision is for the data plane.
func (p *planned) isFor(plane v1alpha1.DataPlane) bool {
	return p != nil && p.result != nil && p.result.DataPlane == plane
}

// has reports whether the configuration of the decision has the hash.
func (p *planned) has(hash string) bool {
	return p != nil && p.configuration != nil && p.hash == hash
}

// at returns the target for the data plane that the Tunnel records, which a step can change.
func (t target) at(object *v1alpha1.Tunnel) target {
	if !t.other.isFor(tunnel.RecordedDataPlane(object)) {
		return t
	}
	current := t.planned
	t.planned, t.other = *t.other, &current
	return t
}

// envoy returns the decision for Envoy, or nil if the Tunnel has no Envoys.
func (t target) envoy(object *v1alpha1.Tunnel) *planned {
	switch {
	case !tunnel.UsesIdentity(object):
		return nil
	case t.isFor(v1alpha1.DataPlaneEnvoy):
		return &t.planned
	case t.other.isFor(v1alpha1.DataPlaneEnvoy):
		return t.other
	default:
		return nil
	}
}

// otherExcess returns why the Gateway cannot change to the data plane that is not in effect, or "".
func (t target) otherExcess() string {
	if t.other == nil {
		return ""
	}
	return t.other.excess
}
