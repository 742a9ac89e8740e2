package controller

import (
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
)

// target is the Gateway that a loop of steps works on.
type target struct {
	key state.Key
	// gateway is nil when the cache does not contain the Gateway.
	gateway *gatewayv1.Gateway
	state   tunnel.Gateway
	// decision is nil when the controller does not manage the Gateway.
	decision *decision.Decision
	// snapshot contains the objects whose status entries are removed when the Tunnel
	// retires.
	snapshot *gateway.Snapshot
}
