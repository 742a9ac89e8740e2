package conformance

import (
	"cmp"
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
	o.RoundTripper = roundTripper{edge: e, to: &roundtripper.DefaultRoundTripper{Debug: o.Debug, TimeoutConfig: o.TimeoutConfig}}
	o.WebSocketDialer = webSocketDialer{e}
	o.GRPCClient = &grpcClient{edge: e}
}

// roundTripper makes requests. The suite's own dials by itself for HTTP/2, so
// that not its connections are led to the edge, but its requests.
type roundTripper struct {
	edge edge
	to   roundtripper.RoundTripper
}

// CaptureRoundTrip implements [roundtripper.RoundTripper].
func (r roundTripper) CaptureRoundTrip(request roundtripper.Request) (*roundtripper.CapturedRequest, *roundtripper.CapturedResponse, error) {
	port := "80"
	if request.URL.Scheme == "https" {
		port = "443"
	}
	address := request.URL.Host
	if request.URL.Port() == "" {
		address = net.JoinHostPort(address, port)
	}
	address, err := r.edge(address)
	if err != nil {
		return nil, nil, err
	}
	request.Host = cmp.Or(request.Host, request.URL.Host)
	request.URL.Host = address
	return r.to.CaptureRoundTrip(request)
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
	address, err := d.edge(c.Location.Host)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", address)
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

// impatient is for what is expected to fail. With nothing beside it, what passes
// does so within about two seconds.
func impatient() timeouts.TimeoutConfig {
	const patience = 5 * time.Second
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
	c.NamespacesMustBeReady = 5 * patience // Pods and the end of Gateways take longer
	return c
}
