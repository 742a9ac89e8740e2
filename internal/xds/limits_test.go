package xds_test

import (
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// limited returns a publication with a limit for the access log.
func limited(sequence int64, version string, lines int32) xds.Publication {
	p := publication(sequence, version, "a")
	p.Resources.Telemetry.AccessLog = &v1alpha1.AccessLog{MaxLinesPerSecond: &lines}
	return p
}

// withLimit returns an Envoy that has the publication and its limit.
func (b *bed) withLimit(t *testing.T) *client {
	t.Helper()
	c := b.startedWithListeners(t)
	c.subscribe(limits, envoy.LimitAccessLog)
	if got := c.settle(); got != "limits access-log" {
		t.Fatalf("got %q", got)
	}
	return c
}

// Envoy subscribes to the limit when it gets a listener with an access log. Without one,
// it can too: the limit always exists.
func TestEveryPublicationHasALimit(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1"))
		b.withLimit(t).close()
	})
}

// A changed limit precedes the listeners, and the publication is not acknowledged without
// it.
func TestAChangedLimitPrecedesTheListeners(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, limited(1, "v1", 5))
		c := b.withLimit(t)
		defer c.close()
		changed := limited(2, "v1", 6)
		changed.Listeners = newListeners("v2")
		b.publish(t, changed)
		sent := c.take()
		if got := describe(sent); got != "limits access-log; listeners open; listeners protected" {
			t.Fatalf("got %q", got)
		}
		for _, r := range sent[1:] {
			c.ack(r)
		}
		c.ack(c.want("listeners ready"))
		b.wantState(t, acknowledgedFirst)
		c.ack(sent[0])
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// A new leader sends the limit only if it differs.
func TestReconnectResendsNoLimit(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, limited(1, "v1", 5))
		first := b.withLimit(t)
		first.close()
		for i, want := range []string{"", "limits access-log"} {
			b.replaceLeader(t)
			b.publish(t, limited(1, "v1", int32(5+i)))
			c := b.envoy(t)
			c.versions = first.versions
			c.subscribe(limits, envoy.LimitAccessLog)
			if got := c.runWithListeners(); got != want {
				t.Errorf("with %d lines, got %q, want %q", 5+i, got, want)
			}
			c.close()
		}
	})
}

// An Envoy whose last listener with an access log is gone unsubscribes. It gets the limit
// again with the next one.
func TestLimitReturnsWithTheAccessLog(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, limited(1, "v1", 5))
		c := b.withLimit(t)
		defer c.close()
		c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: limits, ResourceNamesUnsubscribe: []string{envoy.LimitAccessLog}})
		c.wantNothing()
		b.publish(t, limited(2, "v1", 6))
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		c.more(limits, envoy.LimitAccessLog)
		c.ack(c.want("limits access-log"))
		c.wantNothing()
	})
}

// An Envoy that rejects a limit keeps its limit and gets everything else.
func TestRejectedLimitIsReported(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, limited(1, "v1", 5))
		c := b.withLimit(t)
		defer c.close()
		b.publish(t, limited(2, "v2", 6))
		sent := c.take()
		if got := describe(sent); got != "limits access-log; routes open" {
			t.Fatalf("got %q", got)
		}
		c.nack(sent[0], "bad limit")
		c.ack(sent[1])
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1, Rejected: "bad limit"})
		if n := b.metrics.rejections[metrics.XDSLimits]; n != 1 {
			t.Errorf("%d rejections were recorded, want 1", n)
		}
	})
}
