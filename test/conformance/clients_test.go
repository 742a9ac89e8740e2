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

// edge maps a Gateway's "host:port" to the address that accepts its requests. Tunnel
// addresses resolve only inside Cloudflare.
type edge func(address string) (string, error)

// configureClients makes the suite's clients connect to the addresses that the
// edge returns.
func (e edge) configureClients(o *suite.ConformanceOptions) {
	o.RoundTripper = roundTripper{edge: e, next: &roundtripper.DefaultRoundTripper{Debug: o.Debug, TimeoutConfig: o.TimeoutConfig}}
	o.WebSocketDialer = webSocketDialer{e}
	o.GRPCClient = &grpcClient{edge: e}
}

// roundTripper sends HTTP requests to the edge. It changes the requests and not
// the dialer, because the suite's round tripper has its own dialer for HTTP/2.
type roundTripper struct {
	edge edge
	next roundtripper.RoundTripper
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
	return r.next.CaptureRoundTrip(request)
}

// webSocketDialer opens WebSocket connections to the edge.
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

// grpcClient sends each call to the edge on a new connection.
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

// shortTimeouts returns timeouts for tests that are expected to fail. A test that
// passes needs about two seconds if it runs alone.
func shortTimeouts() timeouts.TimeoutConfig {
	const timeout = 4 * time.Second
	c := timeouts.DefaultTimeoutConfig()
	for _, field := range []*time.Duration{
		&c.GatewayMustHaveAddress, &c.GatewayMustHaveCondition, &c.GatewayStatusMustHaveListeners,
		&c.GatewayListenersMustHaveConditions, &c.ListenerSetMustHaveCondition, &c.ListenerSetListenersMustHaveConditions,
		&c.HTTPRouteMustNotHaveParents, &c.HTTPRouteMustHaveCondition, &c.TLSRouteMustHaveCondition,
		&c.TCPRouteMustHaveCondition, &c.UDPRouteMustHaveCondition, &c.RouteMustHaveParents, &c.MaxTimeToConsistency,
		&c.LatestObservedGenerationSet, &c.DefaultTestTimeout,
	} {
		*field = timeout
	}
	c.NamespacesMustBeReady = 5 * timeout // pods, and Gateways that are deleted, need more time
	return c
}
