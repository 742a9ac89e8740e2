package xds_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// Without a certificate for a current Tunnel, a client gets no response.
func TestRefusedClients(t *testing.T) {
	for _, test := range []struct {
		name         string
		certificates func(t *testing.T, b *bed) []tls.Certificate
	}{
		{"no certificate", func(*testing.T, *bed) []tls.Certificate { return nil }},
		{"another certificate authority", func(t *testing.T, _ *bed) []tls.Certificate {
			return []tls.Certificate{newCA(t).client(t, shared, sharedTunnel, time.Hour)}
		}},
		{"an expired certificate", func(t *testing.T, b *bed) []tls.Certificate {
			return []tls.Certificate{b.client(t, shared, sharedTunnel, -time.Minute)}
		}},
		{"a deleted Tunnel", func(t *testing.T, b *bed) []tls.Certificate {
			return []tls.Certificate{b.client(t, shared, "uid-of-a-deleted-tunnel", time.Hour)}
		}},
		{"the certificate of a server", func(t *testing.T, b *bed) []tls.Certificate { return b.serverConfig(t).Certificates }},
	} {
		t.Run(test.name, func(t *testing.T) {
			withBed(t, func(t *testing.T, b *bed) {
				b.publish(t, publication(1, "secret", "a"))
				c := b.connect(t, test.certificates(t, b)...)
				defer c.close()
				if c.ended() == nil {
					c.subscribe(clusters)
					c.subscribe(routes, "open", "protected")
				}
				if err := c.ended(); status.Code(err) != codes.Unavailable {
					t.Errorf("the stream ended with %v, want Unavailable", err)
				}
				if got := c.take(); len(got) > 0 {
					t.Errorf("got %q", describe(got))
				}
				b.wantState(t, xds.State{Published: true})
			})
		})
	}
}

// The certificate decides which configuration a client gets. The node and the names in
// its requests do not matter.
func TestAClientGetsOnlyItsGatewaysConfiguration(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "secret-of-shared", "s.shop.cart", "eds-of-shared"))
		c := b.connect(t, b.client(t, other, otherTunnel, time.Hour))
		defer c.close()
		c.subscribe(clusters)
		c.subscribe(endpoints, "eds-of-shared")
		c.subscribe(routes, "open", "protected")
		c.wantNothing() // the client's Gateway has no publication

		p := publication(1, "of-other", "b")
		p.Gateway, p.Tunnel = other, otherTunnel
		b.publish(t, p)
		var received []*discoveryv3.DeltaDiscoveryResponse
		for all := c.take(); len(all) > 0; all = c.take() {
			for _, r := range all {
				c.ack(r)
			}
			received = append(received, all...)
		}
		if got, want := describe(received), "endpoints -eds-of-shared; clusters b; routes open; routes protected"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.publish(t, publication(2, "another-secret", "s.shop.pay", "eds-of-shared"))
		c.wantNothing()
		for _, r := range received {
			for _, secret := range []string{"secret-of-shared", "s.shop.cart", "10.0.0.1"} {
				if strings.Contains(r.String(), secret) {
					t.Errorf("a response contains %q", secret)
				}
			}
		}
		b.wantState(t, xds.State{Published: true})
	})
}

// When a Tunnel is removed or replaced, its streams end, even while the client does not
// read.
func TestStreamsOfAnotherTunnelEnd(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(t *testing.T, b *bed)
	}{
		{"removed", func(_ *testing.T, b *bed) { b.Remove(shared) }},
		{"replaced", func(t *testing.T, b *bed) {
			p := publication(1, "v1")
			p.Tunnel = "uid-of-a-newer-tunnel"
			b.publish(t, p)
		}},
		{"no longer current", func(_ *testing.T, b *bed) {
			b.setCurrent(sharedTunnel, false)
			elapse(5 * time.Second)
		}},
		{"certificate expired", func(_ *testing.T, _ *bed) { elapse(24*time.Hour + 5*time.Second) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			withBed(t, func(t *testing.T, b *bed) {
				b.publish(t, publication(1, "v1", "a"))
				c := b.started(t)
				defer c.close()
				test.change(t, b)
				if c.ended() == nil {
					t.Fatal("the stream did not end")
				}
				synctest.Wait()
				if got := b.State(shared).Connected; got != 0 {
					t.Errorf("%d Envoys are connected", got)
				}
			})
		})
	}
}

// A Tunnel that is no longer current gets nothing, even before its stream ends.
func TestAStaleClientGetsNothing(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.setCurrent(sharedTunnel, false)
		b.publish(t, publication(2, "v2", "a"))
		if got := c.take(); len(got) > 0 || status.Code(c.ended()) != codes.PermissionDenied {
			t.Errorf("got %q and the error %v, want PermissionDenied", describe(got), c.ended())
		}
	})
}

// A client whose Tunnel is newer than the publication waits for its Tunnel's
// publication.
func TestAClientOfANewerTunnelWaits(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		const newer = types.UID("uid-of-a-newer-tunnel")
		b.publish(t, publication(1, "v1", "a"))
		b.setCurrent(newer, true)
		c := b.connect(t, b.client(t, shared, newer, time.Hour))
		defer c.close()
		if got := c.run(); got != "" {
			t.Errorf("got %q, want nothing", got)
		}
		p := publication(1, "v1", "b")
		p.Tunnel = newer
		b.publish(t, p)
		if got := c.settle(); got != "clusters b; routes open; routes protected" {
			t.Errorf("got %q", got)
		}
	})
}
