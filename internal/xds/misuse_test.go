package xds_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// A client that makes no valid request loses its stream. Others are served.
func TestInvalidRequestsEndTheStream(t *testing.T) {
	many := make([]string, 200_001)
	versions := map[string]string{}
	for i := range many {
		many[i] = fmt.Sprint(i)
		versions[many[i]] = "1"
	}
	for _, test := range []struct {
		name    string
		request *discoveryv3.DeltaDiscoveryRequest
		want    codes.Code
	}{
		{"no type", &discoveryv3.DeltaDiscoveryRequest{}, codes.InvalidArgument},
		{"too many names", &discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpoints, ResourceNamesSubscribe: many}, codes.ResourceExhausted},
		{"too many versions", &discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters, InitialResourceVersions: versions}, codes.ResourceExhausted},
		{"a long name", &discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpoints, ResourceNamesSubscribe: []string{strings.Repeat("x", 1000)}}, codes.InvalidArgument},
		{"a long version", &discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusters, InitialResourceVersions: map[string]string{"a": strings.Repeat("x", 1000)}}, codes.InvalidArgument},
	} {
		t.Run(test.name, func(t *testing.T) {
			withBed(t, func(t *testing.T, b *bed) {
				b.publish(t, publication(1, "v1", "a"))
				c, other := b.envoy(t), b.envoy(t)
				defer c.close()
				defer other.close()
				c.request(test.request)
				if got := status.Code(c.ended()); got != test.want {
					t.Errorf("the stream ended with %v, want %v", c.ended(), test.want)
				}
				if got := other.run(); got != "clusters a; routes open; routes protected" {
					t.Errorf("another client got %q", got)
				}
			})
		})
	}
}

// A request for a type that the server does not know gets no response, and changes
// nothing else. The server does not remember its names.
func TestUnknownTypesAreIgnored(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		names := make([]string, 100_000)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		for range 30 {
			c.subscribe("type.googleapis.com/envoy.service.runtime.v3.Runtime")
			c.more("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig", names...)
			elapse(time.Second) // the request limit
			c.wantNothing()
		}
		if got := c.run(); got != "clusters a; routes open; routes protected" {
			t.Errorf("got %q", got)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
	})
}

// A reconnecting Envoy lists all its resource versions in one request, which exceeds
// the default maximum for gRPC servers.
func TestFirstRequestCanListManyVersions(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		for i := range 60_000 {
			c.versions[clusters][fmt.Sprintf("s.%060d.80.0123456789abcdef", i)] = strings.Repeat("0", 64)
		}
		c.subscribe(clusters)
		c.ack(c.want("clusters a"))
	})
}

// Envoy sends pings while its stream is idle, even before the first publication. A gRPC
// server refuses pings more often than every five minutes, unless its options permit
// them.
func TestPingsArePermitted(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		// More often than the server's pings, after which this client does not send its
		// own.
		b.dialOptions = []grpc.DialOption{grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 5 * time.Second})}
		c := b.envoy(t)
		defer c.close()
		c.subscribe(clusters)
		elapse(time.Hour)
		c.wantNothing()
	})
}

// Acknowledgements of responses that were never sent change nothing.
func TestUnknownAcknowledgementsAreIgnored(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		c.ack(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: routes, Nonce: "7"})
		c.nack(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: clusters, Nonce: "8"}, "invented")
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true})
		if got := c.settle(); got != "clusters a" {
			t.Errorf("got %q", got)
		}
	})
}

// The server implements only the incremental protocol.
func TestOtherMethodsAreUnimplemented(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		c.cancel() // a connection has one stream
		synctest.Wait()
		stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(c.conn).StreamAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.Unimplemented {
			t.Errorf("got %v, want Unimplemented", err)
		}
	})
}

// A client that does not read what it asked for loses its connection. It delays no other
// client and no publication.
func TestASlowReaderDelaysNoOther(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		large := func(sequence int64, text string) xds.Publication {
			p := publication(sequence, text)
			host := p.Resources.Routes[0].VirtualHosts[0]
			for i := range 300 {
				host.Routes = append(host.Routes, routeConfiguration("", fmt.Sprint(text, i, strings.Repeat("x", 1000))).VirtualHosts[0].Routes[0])
			}
			return p
		}
		b.publish(t, large(1, "v1"))
		slow := b.envoy(t)
		defer slow.close()
		slow.subscribe(clusters)
		slow.ack(slow.want("clusters"))
		slow.hold()
		slow.subscribe(routes, "open", "protected")
		synctest.Wait()
		fast := b.started(t)
		defer fast.close()
		for sequence := range int64(5) {
			b.publish(t, large(2+sequence, fmt.Sprint(sequence)))
			if got := fast.settle(); got != "routes open" {
				t.Errorf("got %q", got)
			}
			elapse(time.Second)
		}
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true})
		elapse(time.Minute)
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 6})
		slow.resume()
	})
}

// A client that subscribes again and again to the same resource gets it at the speed at
// which it acknowledges it.
func TestRepeatedSubscriptionsDoNotPileUp(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		for range 1000 {
			c.more(routes, "open")
		}
		r := c.want("routes open")
		c.ack(r)
		r = c.want("routes open")
		c.ack(r)
		c.wantNothing()
	})
}

// A client that sends more requests than Envoy does is slowed down.
func TestRequestsAreLimited(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		start := time.Now()
		for range 4000 {
			c.ack(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: endpoints, Nonce: "7"})
		}
		c.subscribe(clusters)
		for len(c.take()) == 0 {
			elapse(100 * time.Millisecond)
		}
		if took := time.Since(start); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("4000 requests took %s, want about 10s", took)
		}
	})
}

// A client that does not finish the handshake is disconnected after two seconds.
func TestHandshakesTimeOut(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		conn, err := b.listener.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // the server closes it
		elapse(2 * time.Second)
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("read %d bytes and the error %v, want a closed connection", n, err)
		}
	})
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error) //nolint:errorlint // the error of the connection itself
	return ok && e.Timeout()
}

// A client with a deleted Tunnel's certificate gets no byte after the handshake, not
// even the HTTP/2 settings.
func TestARefusedClientGetsNoByte(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		for tunnel, want := range map[types.UID]bool{sharedTunnel: true, "uid-of-a-deleted-tunnel": false} {
			raw, err := b.listener.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close() //nolint:errcheck // the test ends
			conn := tls.Client(raw, &tls.Config{
				MinVersion: tls.VersionTLS13, ServerName: envoy.ServerName, RootCAs: b.pool(), NextProtos: []string{"h2"},
				Certificates: []tls.Certificate{b.client(t, shared, tunnel, time.Hour)},
			})
			if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if n, err := conn.Read(make([]byte, 1)); n == 1 != want {
				t.Errorf("the client of Tunnel %s read %d bytes and the error %v", tunnel, n, err)
			}
		}
	})
}

// A Gateway cannot use up the connections that others need.
func TestConnectionsOfAGatewayAreLimited(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		certificate := b.client(t, other, otherTunnel, time.Hour)
		config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: envoy.ServerName, RootCAs: b.pool(), Certificates: []tls.Certificate{certificate}, NextProtos: []string{"h2"}}
		open := 0
		for range 110 {
			raw, err := b.listener.DialContext(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close() //nolint:errcheck // the test ends
			conn := tls.Client(raw, config)
			if err := conn.HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				open++
			}
		}
		if open != 100 {
			t.Errorf("%d connections are open, want 100", open)
		}
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		if got := c.run(); got != "clusters a; routes open; routes protected" {
			t.Errorf("an Envoy of another Gateway got %q", got)
		}
	})
}

// A panic ends the stream on which it happens, and does not block the server.
func TestServerWorksAfterAPanic(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.metrics.change(func() { b.metrics.panics = true })
		b.publish(t, publication(1, "v2", "a"))
		c.ack(c.want("routes open"))
		if err := c.ended(); err == nil {
			t.Error("the stream did not end")
		}
		b.metrics.change(func() { b.metrics.panics = false })
		b.publish(t, publication(1, "v3", "a"))
		again := b.started(t)
		defer again.close()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
	})
}

// A client that identifies itself and then opens no stream, ends its stream, or sends
// nothing on it does not keep a connection of its Gateway.
func TestConnectionsWithoutRequestsEnd(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		certificate := b.client(t, shared, sharedTunnel, 24*time.Hour)
		var all []*client
		for i := range 3 { // with more, the race detector sometimes crashes
			c := b.connect(t, certificate)
			defer c.close()
			switch i % 3 {
			case 0:
				c.cancel() // the connection stays
			case 1:
				c.subscribe(clusters)
				synctest.Wait()
				c.cancel()
			}
			all = append(all, c)
		}
		elapse(time.Minute)
		open := 0
		for _, c := range all {
			if c.conn.GetState() == connectivity.Ready {
				open++
			}
		}
		if open != 0 {
			t.Errorf("%d connections without a request are open", open)
		}
		c := b.started(t)
		defer c.close()
		elapse(time.Minute)
		c.wantNothing()
	})
}
