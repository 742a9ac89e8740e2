package xds_test

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// runWithListeners is like run for an Envoy that gets its listeners from the server.
func (c *client) runWithListeners() string {
	c.t.Helper()
	c.subscribe(clusters)
	got := c.settle()
	c.subscribe(listeners)
	got = join(got, c.settle())
	c.subscribe(routes, "open", "protected")
	return join(got, c.settle())
}

// startedWithListeners is like started for an Envoy that gets its listeners from the
// server.
func (b *bed) startedWithListeners(t *testing.T) *client {
	t.Helper()
	c := b.envoy(t)
	c.runWithListeners()
	return c
}

// rejectedListener returns an Envoy that has rejected the listener in the second
// publication.
func (b *bed) rejectedListener(t *testing.T) *client {
	t.Helper()
	b.publish(t, publication(1, "v1"))
	c := b.startedWithListeners(t)
	changed := publication(2, "v2")
	changed.Listeners[0] = newListeners("v2")[0]
	b.publish(t, changed)
	c.nack(c.want("listeners open"), "cannot bind")
	c.ack(c.want("routes open"))
	c.wantNothing()
	return c
}

var acknowledgedFirst = xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1}

// Envoy gets the listeners before their routes, and the listener for probes last, so
// that its port means that Envoy serves.
func TestListenerForProbesComesLast(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.envoy(t)
		defer c.close()
		c.subscribe(clusters)
		c.subscribe(listeners)
		elapse(time.Hour)
		c.wantNothing() // Envoy would start without listeners
		b.publish(t, publication(1, "v1", "a"))
		c.ack(c.want("clusters a"))
		if got := c.settle(); got != "listeners open; listeners protected" {
			t.Errorf("got %q before the routes", got)
		}
		c.subscribe(routes, "open", "protected")
		routed := c.take()
		if got := describe(routed); got != "routes open; routes protected" {
			t.Errorf("got %q", got)
		}
		c.ack(routed[0])
		c.wantNothing()
		c.ack(routed[1])
		ready := c.want("listeners ready")
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true})
		c.ack(ready)
		c.wantNothing()
		b.wantState(t, acknowledgedFirst)
	})
}

// A changed listener precedes the routes, which can rely on it.
func TestRoutesFollowAChangedListener(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.startedWithListeners(t)
		defer c.close()
		changed := publication(2, "v2", "b")
		changed.Listeners = newListeners("v2")
		b.publish(t, changed)
		c.ack(c.want("clusters b"))
		updated := c.take()
		if got := describe(updated); got != "listeners open; listeners protected" {
			t.Fatalf("got %q", got)
		}
		c.ack(updated[0])
		c.wantNothing()
		c.ack(updated[1])
		c.ack(c.want("routes open"))
		c.ack(c.want("listeners ready"))
		c.ack(c.want("clusters -a"))
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// An Envoy that does not acknowledge a listener gets the routes after two seconds.
func TestRoutesWaitAtMostTwoSecondsForListeners(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1"))
		c := b.startedWithListeners(t)
		defer c.close()
		changed := publication(2, "v2")
		changed.Listeners[0] = newListeners("v2")[0]
		b.publish(t, changed)
		c.want("listeners open")
		elapse(2*time.Second - time.Millisecond)
		c.wantNothing()
		elapse(time.Millisecond)
		c.ack(c.want("routes open"))
		c.wantNothing()
		b.wantState(t, acknowledgedFirst)
	})
}

// An Envoy whose bootstrap contains the listeners gets everything else.
func TestEnvoyWithStaticListenersIsServed(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.wantState(t, acknowledgedFirst)
		changed := publication(2, "v2", "b")
		changed.Listeners = newListeners("v2")
		b.publish(t, changed)
		if got, want := c.settle(), "clusters b; routes open; clusters -a"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// A client that reconnects gets only the listeners that differ from what it has, and
// loses listeners that no longer exist.
func TestReconnectResendsNoListener(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		first := b.startedWithListeners(t)
		first.close()
		b.replaceLeader(t)
		changed := publication(1, "v1", "a")
		changed.Listeners[1] = newListeners("v2")[1]
		b.publish(t, changed)
		c := b.envoy(t)
		defer c.close()
		c.versions = first.versions
		c.versions[listeners]["former"] = "1"
		if got, want := c.runWithListeners(), "listeners protected; listeners -former"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, acknowledgedFirst)
	})
}

// An Envoy that rejects a listener keeps the last one and gets the routes, but it has not
// acknowledged the publication. Other Envoys get the listener.
func TestRejectedListenerIsReported(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.rejectedListener(t)
		defer c.close()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1, Rejected: "cannot bind"})
		if n := b.metrics.rejections[metrics.XDSListeners]; n != 1 {
			t.Errorf("%d rejections were recorded, want 1", n)
		}
		second := b.startedWithListeners(t)
		defer second.close()
		if second.versions[listeners]["open"] == c.versions[listeners]["open"] {
			t.Error("a new Envoy does not get the changed listener")
		}
		b.publish(t, publication(3, "v2"))
		c.settle()
		second.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 3})
	})
}

// A listener can fail in a single pod, for example where its port is in use.
func TestRejectionEndsWithTheEnvoy(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.rejectedListener(t)
		second := b.startedWithListeners(t)
		defer second.close()
		second.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 1, Rejected: "cannot bind"})
		c.close()
		second.settle()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// An Envoy that rejects its first listener does not get the listener for probes.
func TestEnvoyWithoutAListenerGetsNoListenerForProbes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		c.subscribe(clusters)
		c.ack(c.want("clusters a"))
		c.subscribe(listeners)
		first := c.take()
		c.nack(first[0], "bad listener")
		c.ack(first[1])
		c.subscribe(routes, "open", "protected")
		if got := c.settle(); got != "routes open; routes protected" {
			t.Errorf("got %q", got)
		}
		changed := publication(2, "v1", "a")
		changed.Listeners = newListeners("v2")
		b.publish(t, changed)
		if got, want := c.settle(), "listeners open; listeners protected; listeners ready"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}
