package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// state returns what the Gateway's conditions report about its Envoys, or nil when no
// request reaches them and none will. change is the data plane change, or nil if it is
// unknown or there is none. last is the tunnel's last known configuration, or nil.
func (e *envoys) state(r *run, object *v1alpha1.Tunnel, change *tunnel.DataPlaneChange, last *provider.Configuration) *gateway.Envoys {
	serves := servesWithEnvoy(r, object)
	if !serves && !isStarting(object) {
		return nil
	}
	s := e.server.State(r.key.NamespacedName)
	found := &gateway.Envoys{
		Connected: s.Connected, Known: s.Known, Published: s.Published, Late: s.Late, Rejected: s.Rejected,
		Acknowledged: e.acknowledges(r.key.NamespacedName, s.Acknowledged),
		Starting:     !serves,
	}
	if object != nil {
		found.Wanted = int(object.Status.Connectors.Desired)
	}
	switch {
	case serves:
		e.describeServing(r, object, last, found)
	case change != nil:
		found.Progress = change.Message
	}
	return found
}

// describeServing adds what concerns only Envoys that serve the Gateway.
func (e *envoys) describeServing(r *run, object *v1alpha1.Tunnel, last *provider.Configuration, found *gateway.Envoys) {
	other := r.decision.Other(object)
	if other != nil && object != nil && object.Status.DataPlaneChange == nil {
		found.Excess = other.Excess
	}
	desired := r.decision.Plane(object).Configuration
	if desired == nil {
		return
	}
	exposure := e.exposure(r.key.NamespacedName)
	found.Access.Kept, found.Access.Closed = exposure.Kept, exposure.Closed
	if last != nil && !other.Has(last.Hash()) {
		found.Access.Hostnames = ingress.PendingAccess(*desired, *last)
	}
}

// servesWithEnvoy reports whether Envoy is the data plane in effect.
func servesWithEnvoy(r *run, object *v1alpha1.Tunnel) bool {
	return r.decision.Plane(object).Result.DataPlane == v1alpha1.DataPlaneEnvoy
}

// isStarting reports whether the Tunnel changes to Envoy, and still has ingress rules.
func isStarting(object *v1alpha1.Tunnel) bool {
	if object == nil || object.Status.DataPlaneChange == nil {
		return false
	}
	return object.Status.DataPlaneChange.To == v1alpha1.DataPlaneEnvoy
}

// facts returns what decisions about the data plane need to know about the Gateway's
// Envoys.
func (e *envoys) facts(gateway types.NamespacedName) tunnel.Envoys {
	s := e.server.State(gateway)
	exposure := e.exposure(gateway)
	return tunnel.Envoys{
		Connected: s.Connected, Late: s.Late, Rejected: s.Rejected, Acknowledged: s.Complete, Unsettled: !exposure.IsSettled(),
	}
}

// acknowledges reports whether the sequence covers the Gateway's present listeners.
func (e *envoys) acknowledges(gateway types.NamespacedName, sequence int64) bool {
	p := e.memories.findPublication(gateway)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sequence > 0 && sequence >= p.sequence
}
