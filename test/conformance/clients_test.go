package conformance

import (
	"context"
	"net"
	"testing"
	"time"

	xwebsocket "golang.org/x/net/websocket"
	timeouts "sigs.k8s.io/gateway-api/conformance/utils/config"
	"sigs.k8s.io/gateway-api/conformance/utils/grpc"
	"sigs.k8s.io/gateway-api/conformance/utils/roundtripper"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/conformance/utils/websocket"
)

// edge tells where requests for the "host:port" of a Gateway really go to:
// addresses of tunnels resolve only inside Cloudflare.
type edge func(address string) (string, error)

// connect makes the suite's clients find tunnels.
func (e edge) connect(o *suite.ConformanceOptions) {
	o.RoundTripper = &roundtripper.DefaultRoundTripper{Debug: o.Debug, TimeoutConfig: o.TimeoutConfig, CustomDialContext: e.dial}
	o.WebSocketDialer = webSocketDialer{e}
	o.GRPCClient = &grpcClient{edge: e}
}

func (e edge) dial(ctx context.Context, network, address string) (net.Conn, error) {
	address, err := e(address)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, address)
}

// webSocketDialer opens WebSockets.
type webSocketDialer struct{ edge edge }

var _ websocket.Dialer = webSocketDialer{}

// Dial implements [websocket.Dialer].
func (d webSocketDialer) Dial(url, protocol, origin string) (*xwebsocket.Conn, error) {
	c, err := xwebsocket.NewConfig(url, origin)
	if err != nil {
		return nil, err
	}
	if protocol != "" {
		c.Protocol = []string{protocol}
	}
	conn, err := d.edge.dial(context.Background(), "tcp", c.Location.Host)
	if err != nil {
		return nil, err
	}
	return xwebsocket.NewClient(c, conn)
}

// grpcClient makes one call on a connection of its own.
type grpcClient struct{ edge edge }

var _ grpc.Client = &grpcClient{}

// SendRPC implements [grpc.Client].
func (c *grpcClient) SendRPC(t *testing.T, address string, expected grpc.ExpectedResponse, timeout time.Duration) (*grpc.Response, error) {
	address, err := c.edge(address)
	if err != nil {
		return nil, err
	}
	client := &grpc.DefaultClient{}
	defer client.Close()
	return client.SendRPC(t, address, expected, timeout)
}

// Close implements [grpc.Client].
func (c *grpcClient) Close() {}

// impatient is for what is expected to fail: what passes here does so within a
// second or two.
func impatient() timeouts.TimeoutConfig {
	const patience = 4 * time.Second
	c := timeouts.DefaultTimeoutConfig()
	for _, timeout := range []*time.Duration{
		&c.GatewayMustHaveAddress, &c.GatewayMustHaveCondition, &c.GatewayStatusMustHaveListeners,
		&c.GatewayListenersMustHaveConditions, &c.ListenerSetMustHaveCondition, &c.ListenerSetListenersMustHaveConditions,
		&c.HTTPRouteMustNotHaveParents, &c.HTTPRouteMustHaveCondition, &c.TLSRouteMustHaveCondition,
		&c.TCPRouteMustHaveCondition, &c.UDPRouteMustHaveCondition, &c.RouteMustHaveParents, &c.MaxTimeToConsistency,
		&c.LatestObservedGenerationSet, &c.DefaultTestTimeout,
	} {
		*timeout = patience
	}
	c.NamespacesMustBeReady = 5 * patience // Pods, too, have to come
	return c
}
