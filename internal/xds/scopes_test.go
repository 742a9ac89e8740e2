package xds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// The scopes in these tests have two buckets per listener, and each listener has one or two
// RouteConfigurations.

func newScope(key, selected string) *routev3.ScopedRouteConfiguration {
	return &routev3.ScopedRouteConfiguration{
		Name: key, RouteConfigurationName: selected,
		Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{
			{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: key}},
		}},
	}
}

// scoped returns a publication with the number of RouteConfigurations for each listener.
// text is in the routes of the first one for the open listener.
func scoped(sequence int64, shards int, text string, names ...string) xds.Publication {
	p := publication(sequence, "", names...)
	p.Resources.Routes = nil
	for _, listener := range []string{envoy.ListenerOpen, envoy.ListenerProtected} {
		name := func(shard int) string {
			if shards == 1 {
				return listener
			}
			return fmt.Sprintf("%s.%d.%d", listener, shards, shard)
		}
		for shard := range shards {
			c := routeConfiguration(name(shard), "")
			c.VirtualHosts[0].Name, c.VirtualHosts[0].Domains = fmt.Sprint("host", shard), []string{fmt.Sprint("host", shard)}
			c.VirtualHosts = append(c.VirtualHosts, routeConfiguration("", "in every shard").VirtualHosts...)
			if listener == envoy.ListenerOpen && shard == 0 {
				c.VirtualHosts[0].Routes[0].Match = routeConfiguration("", text).VirtualHosts[0].Routes[0].Match
			}
			p.Resources.Routes = append(p.Resources.Routes, c)
			p.Resources.Scopes = append(p.Resources.Scopes, newScope("warming/"+c.Name, c.Name))
		}
		for bucket := range 2 {
			p.Resources.Scopes = append(p.Resources.Scopes, newScope(fmt.Sprintf("%s/%d", listener, bucket), name(bucket%shards)))
		}
	}
	return p
}

// runWithScopes is like runWithListeners for an Envoy whose listeners have scopes.
func (c *client) runWithScopes() string {
	c.t.Helper()
	c.subscribe(clusters)
	got := c.settle()
	c.subscribe(listeners)
	first := c.take()
	c.subscribe(scopes) // Envoy does so before it acknowledges the listener
	if names := slices.Sorted(maps.Keys(c.versions[routes])); len(names) > 0 {
		c.subscribe(routes, names...)
	}
	for _, r := range first {
		c.ack(r)
	}
	return join(join(got, describe(first)), c.settle())
}

func (b *bed) startedWithScopes(t *testing.T) *client {
	t.Helper()
	c := b.envoy(t)
	c.runWithScopes()
	return c
}

// subscribeTo follows the scopes in a response, like Envoy: it subscribes to the routes that
// they name, and unsubscribes from routes that no scope names.
func (c *client) subscribeTo(r *discoveryv3.DeltaDiscoveryResponse) {
	c.t.Helper()
	before := slices.Collect(maps.Values(c.selected))
	for _, resource := range r.Resources {
		m := &routev3.ScopedRouteConfiguration{}
		if err := resource.Resource.UnmarshalTo(m); err != nil {
			c.t.Fatal(err)
		}
		c.selected[m.Name] = m.RouteConfigurationName
	}
	for _, name := range r.RemovedResources {
		delete(c.selected, name)
	}
	request := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: routes}
	after := slices.Collect(maps.Values(c.selected))
	for _, name := range after {
		if !slices.Contains(before, name) && !slices.Contains(request.ResourceNamesSubscribe, name) {
			request.ResourceNamesSubscribe = append(request.ResourceNamesSubscribe, name)
		}
	}
	for _, name := range before {
		if !slices.Contains(after, name) && !c.keeps[name] {
			request.ResourceNamesUnsubscribe = append(request.ResourceNamesUnsubscribe, name)
			delete(c.versions[routes], name)
		}
	}
	if len(request.ResourceNamesSubscribe)+len(request.ResourceNamesUnsubscribe) > 0 {
		c.request(request)
	}
}

const startOf2 = "scopes open/0 open/1 protected/0 protected/1 warming/open.2.0 warming/open.2.1 warming/protected.2.0 warming/protected.2.1; " +
	"routes open.2.0; routes open.2.1; routes protected.2.0; routes protected.2.1"

// An Envoy that starts gets all scopes at once. The second listener, which uses the same
// scopes, follows their routes.
func TestStartWithScopes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, scoped(1, 2, "v1", "a"))
		c := b.envoy(t)
		defer c.close()
		want := "clusters a; listeners open; " + startOf2 + "; listeners protected; listeners ready"
		if got := c.runWithScopes(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, acknowledgedFirst)
		if b.metrics.pushes[metrics.XDSScopes] != 1 {
			t.Errorf("%d responses with scopes were counted, want 1", b.metrics.pushes[metrics.XDSScopes])
		}
		b.publish(t, scoped(2, 2, "v2", "b"))
		if got, want := c.settle(), "clusters b; routes open.2.0; clusters -a"; got != want {
			t.Errorf("for a change of one route, got %q, want %q", got, want)
		}
	})
}

// Scopes follow the routes that they select, which follow a scope that makes Envoy request
// them. Scopes that no longer exist are removed when no request belongs to them.
func TestTheNumberOfRouteConfigurationsChanges(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, scoped(1, 1, "v1", "a"))
		c := b.startedWithScopes(t)
		defer c.close()
		b.publish(t, scoped(2, 2, "v1", "b"))
		want := "clusters b; scopes warming/open.2.0 warming/open.2.1 warming/protected.2.0 warming/protected.2.1; " +
			"routes open.2.0; routes open.2.1; routes protected.2.0; routes protected.2.1; scopes open/0 open/1 protected/0 protected/1; " +
			"scopes -warming/open -warming/protected; clusters -a"
		if got := c.settle(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		b.publish(t, scoped(3, 1, "v1", "b"))
		want = "scopes warming/open warming/protected; routes open; routes protected; scopes open/0 open/1 protected/0 protected/1; " +
			"scopes -warming/open.2.0 -warming/open.2.1 -warming/protected.2.0 -warming/protected.2.1"
		if got := c.settle(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 3})
	})
}

// No scope selects routes that the client has not acknowledged.
func TestScopesWaitForTheirRoutes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, scoped(1, 1, "v1"))
		c := b.startedWithScopes(t)
		defer c.close()
		b.publish(t, scoped(2, 2, "v1"))
		warming := c.want("scopes warming/open.2.0 warming/open.2.1 warming/protected.2.0 warming/protected.2.1")
		c.ack(warming)
		c.wantNothing() // the client has not requested the routes
		c.subscribeTo(warming)
		routed := c.take()
		if got := describe(routed); got != "routes open.2.0; routes open.2.1; routes protected.2.0; routes protected.2.1" {
			t.Fatalf("got %q", got)
		}
		for _, r := range routed[1:] {
			c.ack(r)
		}
		elapse(10 * time.Second)
		c.wantNothing()
		c.ack(routed[0])
		c.want("scopes open/0 open/1 protected/0 protected/1")
	})
}

// A client that reconnects while the number of RouteConfigurations changes gets what it
// lacks.
func TestReconnectWithScopes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, scoped(1, 1, "v1", "a"))
		first := b.startedWithScopes(t)
		b.publish(t, scoped(2, 2, "v1", "a"))
		warming := first.want("scopes warming/open.2.0 warming/open.2.1 warming/protected.2.0 warming/protected.2.1")
		first.subscribeTo(warming)
		first.ack(warming)
		for i, r := range first.take() {
			if i < 2 {
				first.ack(r)
			}
		}
		first.close()
		b.replaceLeader(t)
		b.publish(t, scoped(2, 2, "v1", "a"))
		c := b.envoy(t)
		c.versions, c.selected = first.versions, first.selected
		c.versions[routes]["protected.2.0"], c.versions[routes]["protected.2.1"] = "", ""
		want := "routes protected.2.0; routes protected.2.1; scopes open/0 open/1 protected/0 protected/1; scopes -warming/open -warming/protected"
		if got := c.runWithScopes(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		c.close()
		again := b.envoy(t)
		defer again.close()
		again.versions, again.selected = c.versions, c.selected
		if got := again.runWithScopes(); got != "" {
			t.Errorf("after a second reconnect, got %q, want nothing", got)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
	})
}

// If Envoy rejects a new RouteConfiguration, its requests keep the routes that they had, and
// the others get the new ones. A rejected RouteConfiguration that Envoy has goes back alone.
func TestARejectedRouteConfigurationHoldsNoOther(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, scoped(1, 1, "v1", "a"))
		c := b.startedWithScopes(t)
		defer c.close()
		b.publish(t, scoped(2, 2, "bad", "b"))
		c.ack(c.want("clusters b"))
		warming := c.take()[0]
		c.subscribeTo(warming)
		c.ack(warming)
		for _, r := range c.take() {
			if r.Resources[0].Name == "open.2.0" {
				c.nack(r, "bad route")
			} else {
				c.ack(r)
			}
		}
		if got, want := c.settle(), "scopes open/1 protected/0 protected/1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := c.selected["open/0"]; got != "open" {
			t.Errorf("the scope of the rejected routes selects %s, want open", got)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1, Rejected: "bad route"})
		b.publish(t, scoped(3, 2, "v3", "b"))
		if got, want := c.settle(), "routes open.2.0; scopes open/0; scopes -warming/open -warming/protected; clusters -a"; got != want {
			t.Errorf("after the correction, got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 3})
		good := c.versions[routes]["open.2.0"]
		b.publish(t, scoped(4, 2, "bad again", "b"))
		c.nack(c.want("routes open.2.0"), "bad route")
		c.wantNothing()
		second := b.startedWithScopes(t)
		defer second.close()
		if got := second.versions[routes]["open.2.0"]; got != good {
			t.Error("another Envoy does not get the acknowledged routes")
		}
	})
}

// Rejected scopes do not take effect at other Envoys.
func TestRejectedScopesGoBack(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, scoped(1, 1, "v1"))
		c := b.startedWithScopes(t)
		defer c.close()
		b.publish(t, scoped(2, 2, "v1"))
		c.nack(c.want("scopes warming/open.2.0 warming/open.2.1 warming/protected.2.0 warming/protected.2.1"), "conflict")
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 1, Rejected: "conflict"})
		if b.metrics.rejections[metrics.XDSScopes] != 1 {
			t.Errorf("%d rejections were recorded, want 1", b.metrics.rejections[metrics.XDSScopes])
		}
		b.publish(t, scoped(3, 1, "v3"))
		if got := c.settle(); got != "routes open" {
			t.Errorf("got %q", got)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 3})
	})
}

// A publication is refused if Envoy would use routes before it has them.
func TestScopesHaveToFitTheRoutes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		for _, test := range []struct {
			want string
			harm func(*xds.Publication)
		}{
			{"RouteConfiguration another: it is missing", func(p *xds.Publication) {
				p.Resources.Scopes = append(p.Resources.Scopes, newScope("another", "another"))
			}},
			{"RouteConfiguration open.2.0: Envoy does not request it", func(p *xds.Publication) {
				p.Resources.Scopes = slices.DeleteFunc(p.Resources.Scopes, func(s *routev3.ScopedRouteConfiguration) bool { return s.Name == "warming/open.2.0" })
			}},
			{"RouteConfiguration open: it is missing", func(p *xds.Publication) { p.Resources.Scopes = nil }},
		} {
			p := scoped(1, 2, "v1")
			test.harm(&p)
			if err := b.Publish(p); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want %q", err, test.want)
			}
		}
	})
}
