package xds_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// A rejected RouteConfiguration goes back to its acknowledged version, with the
// clusters that this version needs. The other one and new Envoys are served.
func TestRejectedRoutesGoBack(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a", "eds1"))
		c := b.started(t)
		defer c.close()
		bad := publication(2, "bad", "b")
		bad.Resources.Routes[1] = routeConfiguration(envoy.ListenerProtected, "v2")
		b.publish(t, bad)
		c.ack(c.want("clusters b"))
		for _, r := range c.take() {
			if r.Resources[0].Name == envoy.ListenerOpen {
				c.nack(r, "bad\nroute "+strings.Repeat("x", 300))
			} else {
				c.ack(r)
			}
		}
		c.wantNothing() // neither the rejected version again, nor a removal
		problem := "bad route " + strings.Repeat("x", 190)
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1, Rejected: problem})
		if b.metrics.rejections[metrics.XDSRoutes] != 1 {
			t.Errorf("%d rejections were recorded, want 1", b.metrics.rejections[metrics.XDSRoutes])
		}

		second := b.envoy(t)
		defer second.close()
		if got, want := second.run(), "clusters a b eds1; endpoints eds1; routes open; routes protected"; got != want {
			t.Errorf("a new Envoy gets %q, want %q", got, want)
		}
		if c.versions[routes]["open"] != second.versions[routes]["open"] {
			t.Error("a new Envoy gets the rejected routes")
		}

		// Another publication with the same routes does not try them again.
		again := publication(3, "bad", "c")
		again.Resources.Routes[1] = bad.Resources.Routes[1]
		b.publish(t, again)
		if got := c.settle(); got != "clusters c; clusters -b" {
			t.Errorf("got %q", got)
		}
		second.settle()

		b.publish(t, publication(4, "v4", "d"))
		if got, want := c.settle(), "clusters d; routes open; routes protected; clusters -a -c -eds1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		second.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 4})
	})
}

// A leader without an acknowledged version withholds rejected routes.
func TestRejectedRoutesAreWithheldWithoutAnAcknowledgedVersion(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		first := b.started(t)
		first.close()
		b.replaceLeader(t)
		b.publish(t, publication(2, "bad", "b"))
		c := b.envoy(t)
		defer c.close()
		c.versions = first.versions
		c.subscribe(clusters)
		c.subscribe(routes, "open", "protected")
		c.ack(c.want("clusters b"))
		c.nack(c.want("routes open"), "bad route")
		c.wantNothing() // in particular, cluster a stays
		second := b.envoy(t)
		defer second.close()
		if got := second.run(); got != "clusters b; routes protected" {
			t.Errorf("a new Envoy gets %q", got)
		}
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Rejected: "bad route"})
		b.publish(t, publication(3, "v3", "b"))
		if got := c.settle(); got != "routes open; clusters -a" {
			t.Errorf("got %q", got)
		}
		second.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 3})
	})
}

// After an Envoy rejects clusters, the server removes them explicitly, because Envoy
// can have applied some. The routes do not change.
func TestRejectedClustersAreRemoved(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.publish(t, publication(2, "v2", "b", "c"))
		c.nack(c.want("clusters b c"), "bad cluster")
		c.ack(c.want("clusters -b -c"))
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1, Rejected: "bad cluster"})

		second := b.envoy(t)
		defer second.close()
		if got, want := second.run(), "clusters a; clusters -b -c; routes open; routes protected"; got != want {
			t.Errorf("a new Envoy gets %q, want %q", got, want)
		}
		b.publish(t, publication(3, "v3", "b"))
		if got, want := c.settle(), "clusters b; routes open; clusters -a"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		second.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 3})
	})
}

// While rejected clusters are removed, routes wait for clusters that are published again.
func TestRoutesWaitForTheRemovalOfRejectedClusters(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.publish(t, publication(2, "v2", "b", "c"))
		c.nack(c.want("clusters b c"), "bad cluster")
		removal := c.want("clusters -b -c")
		b.publish(t, publication(3, "v3", "b"))
		c.wantNothing()
		c.ack(removal)
		if got, want := c.settle(), "clusters b; routes open; clusters -a"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// A leader without acknowledged clusters withholds everything that Envoy rejected.
func TestRejectedClustersAreWithheldWithoutAcknowledgedOnes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		c.subscribe(clusters)
		c.subscribe(routes, "open", "protected")
		c.nack(c.want("clusters a"), "bad cluster")
		c.ack(c.want("clusters -a"))
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Rejected: "bad cluster"})
		b.publish(t, publication(2, "v2", "b"))
		if got := c.settle(); got != "clusters b; routes open; routes protected" {
			t.Errorf("got %q", got)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// A cluster whose endpoints Envoy rejects holds up no other cluster.
func TestRejectedEndpointsAreFound(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "eds1", "eds2", "eds3"))
		c := b.envoy(t)
		defer c.close()
		c.subscribe(clusters)
		c.subscribe(routes, "open", "protected")
		c.ack(c.want("clusters eds1 eds2 eds3"))
		c.more(endpoints, "eds1", "eds2", "eds3")
		c.nack(c.want("endpoints eds1 eds2 eds3"), "bad endpoint")
		c.ack(c.want("endpoints eds1"))
		c.nack(c.want("endpoints eds2"), "bad endpoint")
		c.ack(c.want("endpoints eds3"))
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Rejected: "bad endpoint"})
		b.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{"eds2": assigned("eds2", "10.0.0.2")})
		if got := c.settle(); got != "endpoints eds2; routes open; routes protected" {
			t.Errorf("got %q", got)
		}
	})
}

// If one Envoy accepts a configuration that another Envoy rejects, the server keeps
// serving it to the first Envoy.
func TestAcceptedRoutesDoNotGoBack(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1"))
		first, second := b.started(t), b.started(t)
		defer first.close()
		defer second.close()
		b.publish(t, publication(2, "v2"))
		firstRoutes, secondRoutes := first.want("routes open"), second.want("routes open")
		second.nack(secondRoutes, "too old")
		second.wantNothing()
		first.ack(firstRoutes)
		first.wantNothing()
		second.wantNothing()
		third := b.started(t)
		defer third.close()
		if first.versions[routes]["open"] != third.versions[routes]["open"] {
			t.Error("a new Envoy does not get the accepted routes")
		}
		b.wantState(t, xds.State{Connected: 3, Known: true, Published: true, Acknowledged: 1, Rejected: "too old"})
	})
}

// When an Envoy rejects clusters after the routes were sent, the routes go back before
// the clusters are removed.
func TestLateRejectionOfClusters(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.publish(t, publication(2, "v2", "b"))
		added := c.want("clusters b")
		elapse(2 * time.Second)
		routed := c.want("routes open")
		c.nack(added, "bad cluster")
		c.wantNothing() // the routes that use the cluster are on their way
		c.ack(routed)
		back := c.want("routes open")
		c.ack(back)
		c.ack(c.want("clusters -b"))
		c.wantNothing()
	})
}

// An Envoy that rejects clusters that another one accepts does not get the routes that
// use them.
func TestRoutesDoNotFollowRejectedClusters(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		first, second := b.started(t), b.started(t)
		defer first.close()
		defer second.close()
		b.publish(t, publication(2, "v2", "b"))
		firstAdded, secondAdded := first.want("clusters b"), second.want("clusters b")
		first.ack(firstAdded)
		first.ack(first.want("routes open"))
		second.nack(secondAdded, "too old")
		second.wantNothing()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 1, Rejected: "too old"})
	})
}

// Endpoints are followed while clusters are rejected.
func TestEndpointsAreFollowedAfterARejection(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "eds"))
		c := b.started(t)
		defer c.close()
		bad := publication(2, "v2", "b", "eds")
		bad.Assignments["eds"] = assigned("eds", "10.0.0.2")
		b.publish(t, bad)
		for _, r := range c.take() {
			if r.TypeUrl == clusters {
				c.nack(r, "bad cluster")
			} else {
				c.ack(r)
			}
		}
		if got := c.settle(); got != "clusters -b" {
			t.Errorf("got %q, want only the removal", got)
		}
		b.PublishEndpoints(shared, sharedTunnel, envoy.Assignments{"eds": assigned("eds", "10.0.0.3")})
		c.ack(c.want("endpoints eds"))
	})
}
