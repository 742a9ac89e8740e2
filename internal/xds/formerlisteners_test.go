package xds_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// An Envoy whose listeners have no scopes gets all routes of a listener in one
// RouteConfiguration, and follows changes.
func TestEnvoyWithoutScopesGetsAllRoutes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.started(t)
		defer c.close()
		b.publish(t, scoped(2, 2, "v1", "b"))
		routed := ""
		c.ack(c.want("clusters b"))
		for _, r := range c.take() {
			c.ack(r)
			routed = join(routed, describe([]*discoveryv3.DeltaDiscoveryResponse{r}))
			if r.Resources[0].Name != envoy.ListenerOpen {
				continue
			}
			m := &routev3.RouteConfiguration{}
			if err := r.Resources[0].Resource.UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, host := range m.VirtualHosts {
				names = append(names, host.Name)
			}
			if got := strings.Join(names, " "); m.Name != envoy.ListenerOpen || got != "host0 app.example.com host1" {
				t.Errorf("RouteConfiguration %s has the virtual hosts %q", m.Name, got)
			}
		}
		if routed != "routes open; routes protected" {
			t.Errorf("got %q", routed)
		}
		c.ack(c.want("clusters -a"))
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		b.publish(t, scoped(3, 2, "v3", "b"))
		c.nack(c.want("routes open"), "too large")
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2, Rejected: "too large"})
		b.publish(t, scoped(4, 2, "v4", "b"))
		if got := c.settle(); got != "routes open" {
			t.Errorf("got %q", got)
		}
		b.publish(t, scoped(5, 1, "v4", "b"))
		if got := c.settle(); got != "routes open; routes protected" {
			t.Errorf("got %q", got)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 5})
	})
}

// Listeners with scopes replace listeners without: the first takes effect when it has all
// routes, and only then the second follows. The connections of the former listeners get
// changed routes until they end. Afterwards the way back is open.
func TestListenersWithScopesReplaceOthers(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, publication(1, "v1", "a"))
		c := b.startedWithListeners(t)
		defer c.close()
		c.keeps = map[string]bool{envoy.ListenerOpen: true, envoy.ListenerProtected: true}
		p := scoped(2, 2, "v2", "b")
		p.Listeners = newListeners("with scopes")
		b.publish(t, p)
		c.ack(c.want("clusters b"))
		first := c.want("listeners open")
		c.subscribe(scopes)
		c.ack(first)
		want := startOf2 + "; listeners protected; listeners ready; routes open; routes protected; clusters -a"
		if got := c.settle(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		p = scoped(3, 2, "v3", "c")
		p.Listeners = newListeners("with scopes")
		b.publish(t, p)
		if got, want := c.settle(), "clusters c; routes open.2.0; routes open; clusters -b"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: routes, ResourceNamesUnsubscribe: []string{"open", "protected"}})
		p = scoped(4, 2, "v4", "c")
		p.Listeners = newListeners("with scopes")
		b.publish(t, p)
		if got, want := c.settle(), "routes open.2.0"; got != want {
			t.Errorf("after the last connection, got %q, want %q", got, want)
		}
	})
}

// An Envoy that went back to listeners without scopes has the scopes and routes from before.
// They are out of date, so that the listeners that use them again follow them.
func TestListenersFollowScopesFromBefore(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		b.publish(t, scoped(1, 2, "v1", "a"))
		first := b.startedWithScopes(t)
		first.close()
		b.replaceLeader(t)
		p := scoped(2, 2, "v2", "b")
		p.Listeners = newListeners("v2")
		b.publish(t, p)
		c := b.envoy(t)
		defer c.close()
		c.versions = first.versions
		c.versions[routes][envoy.ListenerOpen], c.versions[routes][envoy.ListenerProtected] = "another", "another"
		c.subscribe(clusters)
		c.subscribe(scopes)
		c.subscribe(routes, slices.Sorted(maps.Keys(c.versions[routes]))...)
		c.subscribe(listeners)
		want := "clusters b; routes open.2.0; listeners open; listeners protected; listeners ready; routes open; routes protected; clusters -a"
		if got := c.settle(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
