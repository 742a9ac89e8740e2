package xds_test

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// Missing Envoys mean nothing until the server has listened for 15 seconds.
func TestStateIsKnownAfterFifteenSeconds(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1"))
		b.wantState(t, xds.State{Published: true})
		elapse(15*time.Second - time.Millisecond)
		if n := b.changes(); n != 0 {
			t.Errorf("Changed was called %d times before", n)
		}
		b.wantState(t, xds.State{Published: true})
		elapse(time.Millisecond)
		b.wantState(t, xds.State{Known: true, Published: true})
		if got := b.State(other); got != (xds.State{Known: true}) {
			t.Errorf("the state of an unknown Gateway is %+v", got)
		}
		if n := b.changes(); n != 1 {
			t.Errorf("Changed was called %d times, want once", n)
		}
	})
}

// Changed is called when the state changes: when an Envoy connects, acknowledges,
// rejects or disconnects, and not for changes that the state does not show.
func TestChangedIsCalledWhenTheStateChanges(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		if n := b.changes(); n != 2 {
			t.Errorf("Changed was called %d times for a connection and an acknowledgement, want 2", n)
		}
		b.publish(t, publication(1, "v2", "a"))
		c.settle()
		if n := b.changes(); n != 0 {
			t.Errorf("Changed was called %d times for a change of the same sequence", n)
		}
		b.publish(t, publication(2, "v2", "a")) // the same content
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		b.changes()
		b.publish(t, publication(3, "v3", "a"))
		c.nack(c.want("routes open"), "bad")
		if n := b.changes(); n != 1 {
			t.Errorf("Changed was called %d times for a rejection, want once", n)
		}
		c.close()
		if n := b.changes(); n != 1 {
			t.Errorf("Changed was called %d times for the end of a stream, want once", n)
		}
		b.wantState(t, xds.State{Known: true, Published: true, Rejected: "bad"})
	})
}

// The acknowledgements that the caller wants are reported once, however often Envoys
// connect and the publication is repeated.
func TestWantedAcknowledgementsAreReportedOnce(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		wantChanges := func(want int, after string) {
			t.Helper()
			if n := b.changes(); n != want {
				t.Errorf("Changed was called %d times after %s, want %d", n, after, want)
			}
		}
		b.publish(t, publication(1, "v1", "a"))
		first, second := b.started(t), b.started(t)
		defer first.close()
		b.changes()
		next := publication(1, "v2", "a")
		next.WantsAcknowledgement = true
		b.publish(t, next)
		first.settle()
		wantChanges(0, "the acknowledgement of one of two Envoys")
		if b.State(shared).Complete {
			t.Error("the publication is complete before every Envoy has acknowledged it")
		}
		second.settle()
		wantChanges(1, "the acknowledgements")
		if !b.State(shared).Complete {
			t.Error("the publication is not complete")
		}
		for range 3 {
			b.publish(t, next) // with the content that Envoys have
			second.close()
			second = b.envoy(t)
			second.subscribe(clusters)
			wantChanges(2, "the end of a connection and a new one")
		}
		second.close()
	})
}

// Without an Envoy, no publication is complete.
func TestNothingIsCompleteWithoutAnEnvoy(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		next := publication(1, "v1", "a")
		next.WantsAcknowledgement = true
		b.publish(t, next)
		if b.State(shared).Complete || b.State(other).Complete {
			t.Error("a publication is complete without an Envoy")
		}
		if n := b.changes(); n != 0 {
			t.Errorf("Changed was called %d times", n)
		}
	})
}

// A sequence is acknowledged when every connected Envoy has acknowledged it.
func TestEveryEnvoyAcknowledges(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		first, second := b.started(t), b.started(t)
		defer first.close()
		b.publish(t, publication(2, "v2", "a"))
		first.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 1})
		b.publish(t, publication(2, "v3", "a"))
		first.settle()
		b.wantState(t, xds.State{Connected: 2, Known: true, Published: true, Acknowledged: 1})
		second.close()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		if got := b.metrics.connected[shared]; got != 1 {
			t.Errorf("%d Envoys were recorded, want 1", got)
		}
		if got := b.metrics.pushes; got[metrics.XDSClusters] != 2 || got[metrics.XDSRoutes] != 7 {
			t.Errorf("the recorded responses are %v", got)
		}
		b.Remove(shared)
		if _, ok := b.metrics.connected[shared]; ok {
			t.Error("Remove did not remove the number of Envoys")
		}
	})
}

// A publication that is not valid is refused as a whole, even when the error is in a
// packed message.
func TestInvalidPublicationsAreRefused(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		for _, test := range []struct {
			want string
			harm func(*xds.Publication)
		}{
			{"are missing", func(p *xds.Publication) { p.Resources = nil }},
			{"are missing", func(p *xds.Publication) { p.Tunnel = "" }},
			{"Cluster b: invalid Cluster.ConnectTimeout", func(p *xds.Publication) { p.Resources.Clusters[0].ConnectTimeout.Seconds = -1 }},
			{"ClusterLoadAssignment eds: invalid", func(p *xds.Publication) { p.Assignments["eds"] = assigned("eds", "") }},
			{"virtual host app.example.com: invalid VirtualHost.Domains", func(p *xds.Publication) { p.Resources.Routes[0].VirtualHosts[0].Domains = nil }},
			{"RouteConfiguration open: invalid RouteConfiguration.RequestHeadersToRemove", func(p *xds.Publication) {
				p.Resources.Routes[0].RequestHeadersToRemove = []string{"a\n"}
			}},
			{"invalid RuntimeFractionalPercent.DefaultValue", func(p *xds.Publication) {
				packed, err := anypb.New(&corsv3.CorsPolicy{FilterEnabled: &corev3.RuntimeFractionalPercent{}})
				if err != nil {
					t.Fatal(err)
				}
				p.Resources.Routes[0].VirtualHosts[0].Routes[0].TypedPerFilterConfig = map[string]*anypb.Any{"cors": packed}
			}},
			{"decode type.googleapis.com/unknown", func(p *xds.Publication) {
				p.Resources.Routes[0].VirtualHosts[0].TypedPerFilterConfig = map[string]*anypb.Any{"unknown": {TypeUrl: "type.googleapis.com/unknown"}}
			}},
			{"invalid UTF-8", func(p *xds.Publication) {
				p.Resources.Routes[0].VirtualHosts = append(p.Resources.Routes[0].VirtualHosts, &routev3.VirtualHost{Name: "\xff", Domains: []string{"x"}})
			}},
		} {
			p := publication(2, "v2", "b", "eds")
			test.harm(&p)
			if err := b.Publish(p); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want %q", err, test.want)
			}
		}
		c.wantNothing()
		b.wantState(t, xds.State{
			Connected: 1, Known: true, Published: true, Acknowledged: 1,
			Rejected: "encode *routev3.RouteConfiguration: string field contains invalid UTF-8",
		})
		b.publish(t, publication(2, "v2", "b", "eds"))
		if got, want := c.settle(), "clusters b eds; endpoints eds; routes open; clusters -a"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// A first publication that is not valid does not end the streams that wait for it.
func TestStreamsWaitForAValidPublication(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.started(t)
		defer c.close()
		p := publication(1, "v1", "a")
		p.Resources.Clusters[0].ConnectTimeout.Seconds = -1
		if err := b.Publish(p); err == nil {
			t.Fatal("the publication is accepted")
		}
		c.wantNothing()
		if s := b.State(shared); s.Connected != 1 || !s.Published || s.Rejected == "" {
			t.Errorf("the state is %+v, want one Envoy and a rejected publication", s)
		}
		b.publish(t, publication(1, "v1", "a"))
		if got, want := c.settle(), "clusters a; routes open; routes protected"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// An Envoy is late when it has acknowledged nothing for a few seconds, although it does
// not have the last publication.
func TestEnvoyIsLate(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		elapse(11 * time.Second)
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
		b.publish(t, publication(1, "v2", "a"))
		b.changes()
		elapse(5 * time.Second)
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
		elapse(5 * time.Second)
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1, Late: true})
		if n := b.changes(); n != 1 {
			t.Errorf("Changed was called %d times, want once", n)
		}
		c.settle()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1})
		if n := b.changes(); n != 1 {
			t.Errorf("Changed was called %d times, want once", n)
		}
	})
}
