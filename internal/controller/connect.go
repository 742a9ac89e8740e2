package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// connect keeps the token of the tunnel in its Secret, and the connectors that
// run with it. It returns when to come back. A failure is told by an event, and
// the hostnames of a tunnel whose connectors run do not depend on it.
func (ts *tunnels) connect(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, result *gateway.Result) time.Duration {
	if ctx.Err() != nil || paused(g) || ts.ownTunnel(t) == "" || t.local || t.account.provider == nil || t.record.Account != t.account.id {
		return ts.driftInterval
	}
	again := ts.keepToken(ctx, t, g)
	if t.token.hash == "" || t.record.Hash == "" {
		return again // a tunnel without a document of ours has nothing of ours to serve
	}
	if wait := t.connectors.wait(ts.now(), ""); wait > 0 {
		return min(again, wait)
	}
	err := ts.runConnectors(ctx, t, g, result)
	if err == nil || ctx.Err() != nil {
		t.connectors = fault{}
		return again
	}
	_, wait := ts.failed(ctx, t, g, err, &t.connectors, attempt{
		outcome: "The connectors are not as they should be.", event: "ConnectorsFailed", action: "Connect",
		log: "the connectors are not as they should be",
	})
	return min(again, wait)
}

func (ts *tunnels) runConnectors(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, result *gateway.Result) error {
	settings := ptr.Deref(result.Settings.Spec.Connector, v1alpha1.Connector{})
	if err := ts.stickToHTTP2(ctx, t, g, settings, result); err != nil {
		return err
	}
	return ts.connectors.apply(ctx, connector.Input{
		Gateway: g, Settings: settings,
		TokenSecret: tokenSecretName(g.Name), TokenKey: TokenKey, TokenVersion: t.token.hash,
		HTTP2: t.record.HTTP2,
	})
}

// stickToHTTP2 notes the first GRPCRoute of a Gateway: gRPC's trailers do not
// survive QUIC. It stays noted, so that connectors do not restart whenever such
// a route comes or goes.
func (ts *tunnels) stickToHTTP2(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, settings v1alpha1.Connector, result *gateway.Result) error {
	if t.record.HTTP2 || ptr.Deref(settings.Protocol, v1alpha1.ProtocolAuto) != v1alpha1.ProtocolAuto || !result.ServesGRPC() {
		return nil
	}
	record := t.record
	record.HTTP2 = true
	if err := ts.writeRecord(ctx, t, g, record); err != nil {
		return err
	}
	ts.event(g, corev1.EventTypeNormal, "ConnectorProtocol", "Connect", fmt.Sprintf(
		"The connectors of tunnel %s talk HTTP/2 to the edge from now on, because the Gateway has a GRPCRoute and QUIC loses gRPC's trailers.", t.record.Tunnel))
	return nil
}

// hasToConnect reports whether the Gateway's connectors should be running: there
// is a document of ours to serve, and nobody asked us to keep away or to let go.
func (ts *tunnels) hasToConnect(t *tunnel, g *gatewayv1.Gateway) bool {
	return ts.ownTunnel(t) != "" && t.record.Hash != "" && !paused(g) && g.DeletionTimestamp.IsZero()
}

// connectorsReady says how ready the Gateway's connectors are.
func (ts *tunnels) connectorsReady(ctx context.Context, t *tunnel, g *gatewayv1.Gateway, settings *gateway.Settings) (*gateway.Readiness, error) {
	wanted := false
	if settings != nil {
		wanted = settings.Spec.Connector == nil || ptr.Deref(settings.Spec.Connector.Enabled, true)
	}
	missing := int32(0)
	if ts.hasToConnect(t, g) {
		missing = 1
	}
	ready, err := ts.connectors.ready(ctx, g, wanted, missing)
	if err != nil || t.connectors.cause == "" {
		return ready, err
	}
	failed := ptr.Deref(ready, gateway.Readiness{})
	failed.Status, failed.Reason, failed.Message = metav1.ConditionFalse, "Failed", t.connectors.cause
	return &failed, nil
}
