package xds_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"iter"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

const (
	clusters  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpoints = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listeners = "type.googleapis.com/envoy.config.listener.v3.Listener"
	scopes    = "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration"
	routes    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	limits    = "type.googleapis.com/envoy.type.v3.TokenBucket"
)

func splitPath(path string) iter.Seq[string] { return strings.SplitSeq(strings.Trim(path, "/"), "/") }

// client plays Envoy on a stream.
type client struct {
	t      *testing.T
	conn   *grpc.ClientConn
	stream grpc.BidiStreamingClient[discoveryv3.DeltaDiscoveryRequest, discoveryv3.DeltaDiscoveryResponse]
	cancel context.CancelFunc

	mu        sync.Mutex
	responses []*discoveryv3.DeltaDiscoveryResponse
	err       error
	// isHeld stops reading from the connection until resumed is closed.
	isHeld  atomic.Bool
	resumed chan struct{}
	// versions are what the client has, by type and name.
	versions map[string]map[string]string
	// selected maps the scopes that the client has to the routes that they select. The client
	// also keeps subscriptions to routes.
	selected map[string]string
	keeps    map[string]bool
}

// connect opens a stream with the certificate. The stream may fail later.
func (b *bed) connect(t *testing.T, certificates ...tls.Certificate) *client {
	t.Helper()
	c := &client{t: t, resumed: make(chan struct{}), selected: map[string]string{}, versions: map[string]map[string]string{clusters: {}, endpoints: {}, listeners: {}, scopes: {}, routes: {}, limits: {}}}
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: envoy.ServerName, RootCAs: b.pool(), Certificates: certificates}
	conn, err := grpc.NewClient("passthrough:///server", append(b.dialOptions,
		grpc.WithTransportCredentials(credentials.NewTLS(config)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return b.dial(ctx, c.awaitResume) }))...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	c.conn, c.cancel = conn, cancel
	if c.stream, err = discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx); err != nil {
		c.err = err
		return c
	}
	go c.receive()
	return c
}

// envoy opens a stream for an Envoy that serves the Gateway shared.
func (b *bed) envoy(t *testing.T) *client {
	t.Helper()
	return b.connect(t, b.client(t, shared, sharedTunnel, 24*time.Hour))
}

func (c *client) hold() {
	c.t.Helper()
	synctest.Wait()
	c.isHeld.Store(true)
}

func (c *client) resume() { close(c.resumed) }

// awaitResume waits while the client does not read from the connection.
func (c *client) awaitResume() {
	if c.isHeld.Load() {
		<-c.resumed
	}
}

func (c *client) receive() {
	for {
		r, err := c.stream.Recv()
		c.mu.Lock()
		if err != nil {
			c.err = err
			c.mu.Unlock()
			return
		}
		c.responses = append(c.responses, r)
		c.mu.Unlock()
	}
}

// close ends the stream and the connection, even if they have ended.
func (c *client) close() {
	c.cancel()
	_ = c.conn.Close() // perhaps again
	synctest.Wait()
}

// ended returns the error with which the stream ended, or nil.
func (c *client) ended() error {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// take returns the responses that have arrived since the last call.
func (c *client) take() []*discoveryv3.DeltaDiscoveryResponse {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.responses
	c.responses = nil
	return all
}

// request sends a request with a forged node.
func (c *client) request(r *discoveryv3.DeltaDiscoveryRequest) {
	c.t.Helper()
	r.Node = &corev3.Node{Id: other.String(), Cluster: other.String()}
	if err := c.stream.Send(r); err != nil {
		c.t.Logf("send: %v", err)
	}
}

// subscribe sends the first request for a type, with the versions that the client has.
func (c *client) subscribe(typeURL string, names ...string) {
	c.t.Helper()
	c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names, InitialResourceVersions: maps.Clone(c.versions[typeURL])})
}

// more subscribes to further names of a type.
func (c *client) more(typeURL string, names ...string) {
	c.t.Helper()
	c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names})
}

// ack acknowledges a response.
func (c *client) ack(r *discoveryv3.DeltaDiscoveryResponse) {
	c.t.Helper()
	for _, resource := range r.Resources {
		c.versions[r.TypeUrl][resource.Name] = resource.Version
	}
	for _, name := range r.RemovedResources {
		delete(c.versions[r.TypeUrl], name)
	}
	c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce})
}

// nack rejects a response.
func (c *client) nack(r *discoveryv3.DeltaDiscoveryResponse, problem string) {
	c.t.Helper()
	c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: r.TypeUrl, ResponseNonce: r.Nonce, ErrorDetail: status.New(codes.InvalidArgument, problem).Proto()})
}

// want returns the only response that has arrived, which has to be as described.
func (c *client) want(description string) *discoveryv3.DeltaDiscoveryResponse {
	c.t.Helper()
	responses := c.take()
	if got := describe(responses); got != description {
		c.t.Fatalf("got %q, want %q (the stream ended with %v)", got, description, c.ended())
	}
	return responses[0]
}

// wantNothing checks that no response has arrived and the stream is open.
func (c *client) wantNothing() {
	c.t.Helper()
	if got := c.take(); len(got) > 0 || c.ended() != nil {
		c.t.Fatalf("got %q and the error %v, want nothing", describe(got), c.ended())
	}
}

func describe(responses []*discoveryv3.DeltaDiscoveryResponse) string {
	var all []string
	for _, r := range responses {
		text := map[string]string{clusters: "clusters", endpoints: "endpoints", listeners: "listeners", scopes: "scopes", routes: "routes", limits: "limits"}[r.TypeUrl]
		for _, resource := range r.Resources {
			text += " " + resource.Name
		}
		for _, name := range r.RemovedResources {
			text += " -" + name
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

// run subscribes like a starting or reconnecting Envoy whose bootstrap contains the
// listeners, and acknowledges everything until nothing more arrives. It returns what
// arrived.
func (c *client) run() string {
	c.t.Helper()
	c.subscribe(clusters)
	if len(c.versions[endpoints]) > 0 {
		c.subscribe(endpoints, slices.Sorted(maps.Keys(c.versions[endpoints]))...)
	}
	got := c.settle()
	c.subscribe(routes, "open", "protected")
	return join(got, c.settle())
}

// settle acknowledges everything until nothing more arrives, and subscribes to the
// endpoints that clusters need and to the routes that scopes select. It returns what arrived.
func (c *client) settle() string {
	c.t.Helper()
	got := ""
	for {
		responses := c.take()
		if len(responses) == 0 {
			return got
		}
		got = join(got, describe(responses))
		for _, r := range responses {
			if r.TypeUrl == scopes {
				c.subscribeTo(r)
			}
			c.ack(r)
			for _, resource := range r.Resources {
				if r.TypeUrl == clusters && strings.HasPrefix(resource.Name, "eds") {
					c.more(endpoints, resource.Name)
				}
			}
		}
	}
}

func join(a, b string) string {
	return strings.Trim(fmt.Sprintf("%s; %s", a, b), "; ")
}

// started returns an Envoy that has the publication for the Gateway shared.
func (b *bed) started(t *testing.T) *client {
	t.Helper()
	c := b.envoy(t)
	c.run()
	return c
}
