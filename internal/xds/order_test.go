package xds_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// An Envoy that connects before the first publication waits. An empty response would
// remove what it has.
func TestStreamIsHeldUntilTheFirstPublication(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.envoy(t)
		defer c.close()
		c.subscribe(clusters)
		c.subscribe(routes, "open", "protected")
		elapse(time.Hour)
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true})
		b.publish(t, publication(1, "v1", "a"))
		c.ack(c.want("clusters a"))
		if got := c.settle(); got != "routes open; routes protected" {
			t.Errorf("got %q", got)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
	})
}

// An Envoy without a configuration waits for responses about clusters and endpoints,
// even if there are none.
func TestFirstStart(t *testing.T) {
	for _, test := range []struct {
		name     string
		clusters []string
		want     string
	}{
		{"no clusters", nil, "clusters; routes open; routes protected"},
		{"clusters with an address", []string{"a", "b"}, "clusters a b; routes open; routes protected"},
		{"clusters with endpoints", []string{"a", "eds"}, "clusters a eds; endpoints eds; routes open; routes protected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			withBed(t, func(t *testing.T, b *bed) {
				p := publication(1, "v1", test.clusters...)
				delete(p.Assignments, "eds")
				b.publish(t, p)
				c := b.envoy(t)
				defer c.close()
				if got := c.run(); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
			})
		})
	}
}

// Routes follow once their clusters and endpoints are acknowledged. Clusters are
// removed once the routes are acknowledged.
func TestOrderOfAPublication(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a", "eds1"))
		c := b.started(t)
		defer c.close()
		b.publish(t, publication(2, "v2", "b", "eds2"))
		added := c.want("clusters b eds2")
		c.more(endpoints, "eds2")
		assigned := c.want("endpoints eds2")
		c.ack(added)
		c.wantNothing() // the routes wait for the endpoints
		c.ack(assigned)
		routed := c.want("routes open")
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
		c.ack(routed)
		removed := c.want("clusters -a -eds1")
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		c.ack(removed)
		c.wantNothing()
	})
}

// An Envoy that does not acknowledge clusters gets the routes after two seconds. Nothing is
// removed before it acknowledges them, and its stream ends after a minute.
func TestRoutesWaitAtMostTwoSeconds(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.publish(t, publication(2, "v2", "b"))
		c.want("clusters b")
		elapse(2*time.Second - time.Millisecond)
		c.wantNothing()
		elapse(time.Millisecond)
		c.want("routes open")
		elapse(57 * time.Second)
		c.wantNothing()
		elapse(time.Second)
		if c.ended() == nil {
			t.Error("the stream did not end")
		}
	})
}

// Changed endpoints do not wait for routes.
func TestEndpointsGoOutOnTheirOwn(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "eds"))
		c := b.started(t)
		defer c.close()
		b.publish(t, publication(2, "v2", "eds"))
		routed := c.want("routes open")
		b.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{"eds": assigned("eds", "10.0.0.2"), "unknown": assigned("unknown", "10.0.0.3")})
		c.ack(c.want("endpoints eds"))
		b.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{"eds": assigned("eds", "10.0.0.2")})
		b.PublishEndpoints(shared, "uid-of-an-older-tunnel", envoy.Assignments{"eds": assigned("eds", "10.0.0.4")})
		b.PublishEndpoints(other, otherTunnel, envoy.Assignments{"eds": assigned("eds", "10.0.0.5")})
		b.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{"eds": assigned("eds", "")}) // not valid
		c.wantNothing()
		c.ack(routed)
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		// A publication with the same routes keeps the state.
		p := publication(2, "v2", "eds")
		p.Assignments["eds"] = assigned("eds", "10.0.0.6")
		b.publish(t, p)
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		c.ack(c.want("endpoints eds"))
	})
}

// A client that subscribes again to a resource gets it again. It does not wait for
// names that do not exist.
func TestSubscriptions(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "eds"))
		c := b.started(t)
		defer c.close()
		c.more(endpoints, "eds", "unknown")
		c.ack(c.want("endpoints eds -unknown"))
		c.more(routes, "another")
		c.ack(c.want("routes -another"))
		c.wantNothing()
	})
}

// A client that reconnects, even to another leader, gets only what differs from what it
// has.
func TestReconnectResendsNothing(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a", "eds"))
		first := b.started(t)
		first.close()
		b.wantState(t, xds.State{Known: true, Published: true})
		b.replaceLeader(t)
		c := b.envoy(t)
		defer func() { c.close() }()
		c.versions = first.versions
		if got := c.run(); got != "" {
			t.Fatalf("got %q before the first publication", got)
		}
		b.publish(t, publication(1, "v1", "a", "eds"))
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})

		c.close()
		b.publish(t, publication(2, "v2", "b", "eds"))
		versions := c.versions
		c = b.envoy(t)
		c.versions = versions
		if got, want := c.run(), "clusters b; routes open; clusters -a"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// Changes that follow each other closely are sent together.
func TestChangesAreBatched(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v0"))
		c := b.started(t)
		defer c.close()
		responses := 0
		acknowledge := func() {
			synctest.Wait()
			for _, r := range c.take() {
				responses++
				elapse(5 * time.Millisecond)
				c.ack(r)
			}
		}
		const changes = 900
		for i := range changes {
			b.publish(t, publication(1, string(rune('a'+i%26))+string(rune('a'+i/26))))
			elapse(time.Second/changes - 20*time.Microsecond)
			acknowledge()
		}
		elapse(250 * time.Millisecond)
		acknowledge()
		elapse(250 * time.Millisecond)
		c.wantNothing()
		if responses < 3 || responses > 15 {
			t.Errorf("%d changes were sent in %d responses, want 3 to 15", changes, responses)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})

		// A single change does not wait.
		elapse(time.Second)
		b.publish(t, publication(1, "single"))
		c.ack(c.want("routes open"))
	})
}
