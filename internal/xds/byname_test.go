package xds_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

const (
	web  = "s.shop.web.80.0123456789abcdef"
	cart = "s.shop.cart.80.0123456789abcdef"
)

var allServices envoy.EndpointSource

func serviceSource(namespace, name string) envoy.EndpointSource {
	return envoy.EndpointSource{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// reconnected returns an Envoy that has the clusters with an address from an earlier
// leader.
func (b *bed) reconnected(t *testing.T, ip string, names ...string) *client {
	t.Helper()
	b.publish(t, withEndpoints(publication(1, "v1", "a"), ip, names...))
	first := b.envoy(t)
	first.subscribe(clusters)
	first.ack(first.want(strings.Join(slices.Concat([]string{"clusters a"}, names), " ")))
	first.subscribe(endpoints, names...)
	first.ack(first.want("endpoints " + strings.Join(names, " ")))
	first.subscribe(routes, "open", "protected")
	first.settle()
	b.replaceLeader(t)
	first.close()
	c := b.envoy(t)
	c.versions = first.versions
	c.subscribe(clusters)
	c.subscribe(endpoints, names...)
	c.subscribe(routes, "open", "protected")
	return c
}

// withEndpoints adds clusters to the publication.
func withEndpoints(p xds.Publication, ip string, names ...string) xds.Publication {
	for _, name := range names {
		added := publication(1, "", "eds")
		added.Resources.Clusters[0].Name = name
		p.Resources.Clusters = append(p.Resources.Clusters, added.Resources.Clusters[0])
		p.Resources.Endpoints = append(p.Resources.Endpoints, envoy.EndpointsOf{Cluster: name})
		p.Assignments[name] = assigned(name, ip)
	}
	return p
}

// answer publishes the same address for all clusters to which Envoys subscribe.
func (b *bed) answer(ip string) {
	wanted, a := b.Subscriptions(shared, allServices), envoy.Assignments{}
	for _, cluster := range wanted.Clusters {
		a[cluster.Name] = assigned(cluster.Name, ip)
	}
	b.PublishByName(shared, wanted.Number, a)
}

func (b *bed) wantSubscriptions(t *testing.T, names ...string) {
	t.Helper()
	var got []string
	for _, cluster := range b.Subscriptions(shared, allServices).Clusters {
		got = append(got, cluster.Name)
	}
	if slices.Sort(names); !slices.Equal(got, names) {
		t.Errorf("the subscriptions are %q, want %q", got, names)
	}
}

// A leader without a publication sends an Envoy the endpoints of its clusters, and nothing
// else. A publication with the same endpoints resends nothing.
func TestEndpointsWithoutAPublication(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.reconnected(t, "10.0.0.1", cart, web)
		defer c.close()
		c.wantNothing()
		b.wantSubscriptions(t, cart, web)
		b.answer("10.0.0.1") // as before
		c.wantNothing()
		b.answer("10.0.0.2")
		c.ack(c.want("endpoints " + cart + " " + web))
		number := b.Subscriptions(shared, serviceSource("shop", "web")).Number
		b.PublishByName(shared, number, envoy.Assignments{web: nil})
		elapse(time.Second)
		r := c.want("endpoints " + web)
		if got := len(r.Resources[0].Resource.Value); got != len(web)+2 {
			t.Errorf("the assignment has %d bytes, want only the name", got)
		}
		c.ack(r)
		elapse(time.Hour)
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true})

		p := withEndpoints(publication(2, "v1", "a"), "10.0.0.2", cart, web)
		delete(p.Assignments, web)
		b.publish(t, p)
		c.wantNothing()
		b.wantState(t, xds.State{Connected: 1, Known: true, Published: true, Acknowledged: 2})
		b.wantSubscriptions(t)
		b.PublishByName(shared, number+100, envoy.Assignments{web: assigned(web, "10.0.0.9")})
		c.wantNothing()
	})
}

// Only well-formed names to which an Envoy subscribes are answered, even if the server
// knows others.
func TestNamesThatAreAnswered(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.envoy(t)
		defer c.close()
		c.subscribe(clusters)
		c.subscribe(endpoints, "*", "eds", web, "s.shop.web.80.0123456789ABCDEF", "s.shop.web.80.", strings.Repeat("s", 256))
		c.more(endpoints, "i.shop.web.80.0123456789abcdef")
		c.wantNothing()
		b.wantSubscriptions(t, web, "i.shop.web.80.0123456789abcdef")
		other := b.envoy(t)
		defer other.close()
		other.subscribe(endpoints, cart)
		other.wantNothing()
		number := b.Subscriptions(shared, allServices).Number
		b.PublishByName(shared, number, envoy.Assignments{
			web: assigned(web, "10.0.0.1"), cart: assigned(cart, "10.0.0.2"), "eds": assigned("eds", "10.0.0.3"), "s.shop.other.80.0123456789abcdef": nil,
		})
		c.ack(c.want("endpoints " + web))
		other.ack(other.want("endpoints " + cart))
		c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpoints, ResourceNamesUnsubscribe: []string{web}})
		c.wantNothing()
		b.wantSubscriptions(t, cart, "i.shop.web.80.0123456789abcdef")
		other.close()
		b.wantSubscriptions(t, "i.shop.web.80.0123456789abcdef")
		if got := b.Subscribers(serviceSource("shop", "cart")); len(got) != 0 {
			t.Errorf("the Gateways %v subscribe to a Service that no Envoy names", got)
		}
	})
}

// Another Gateway's Envoy does not get what is published for this one.
func TestNamesAreAnsweredForOneGateway(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c, neighbor := b.envoy(t), b.connect(t, b.client(t, other, otherTunnel, time.Hour))
		defer c.close()
		defer neighbor.close()
		c.subscribe(endpoints, web)
		neighbor.subscribe(endpoints, web)
		c.wantNothing()
		b.answer("10.0.0.1")
		c.ack(c.want("endpoints " + web))
		neighbor.wantNothing()
		got := b.Subscribers(serviceSource("shop", "web"))
		if len(got) != 2 || !slices.Contains(got, shared) || !slices.Contains(got, other) {
			t.Errorf("the Gateways %v subscribe, want both", got)
		}
		b.setCurrent(otherTunnel, false)
		elapse(10 * time.Second)
		if neighbor.ended() == nil {
			t.Error("the stream of an Envoy whose Tunnel is gone is open")
		}
		if got := b.Subscribers(allServices); !slices.Equal(got, []types.NamespacedName{shared}) {
			t.Errorf("the Gateways %v subscribe, want %s", got, shared)
		}
	})
}

// Endpoints that were read earlier do not replace endpoints that were read later, and are
// not used for an Envoy that subscribes afterwards.
func TestOlderEndpointsByName(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.envoy(t)
		c.subscribe(endpoints, web)
		c.wantNothing()
		older := b.Subscriptions(shared, allServices).Number
		b.answer("10.0.0.2")
		c.ack(c.want("endpoints " + web))
		b.PublishByName(shared, older, envoy.Assignments{web: assigned(web, "10.0.0.1")})
		elapse(time.Second)
		c.wantNothing()
		latest := b.Subscriptions(shared, allServices).Number
		c.close()
		c = b.envoy(t)
		defer c.close()
		c.subscribe(endpoints, web)
		c.wantNothing()
		b.PublishByName(shared, latest, envoy.Assignments{web: assigned(web, "10.0.0.1")})
		c.wantNothing()
		b.answer("10.0.0.3")
		c.ack(c.want("endpoints " + web))
	})
}

// While the server withholds a publication, and while Envoys reject its routes, endpoints
// are answered by name.
func TestEndpointsOfEarlierRoutes(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.reconnected(t, "10.0.0.1", web)
		defer c.close()
		b.publish(t, publication(2, "rejected", "b"))
		c.ack(c.want("clusters b"))
		c.nack(c.want("routes open"), "no")
		c.wantNothing()
		b.wantSubscriptions(t, web)
		b.answer("10.0.0.2")
		c.ack(c.want("endpoints " + web))
		b.publish(t, withEndpoints(publication(3, "v1", "a"), "10.0.0.2", web))
		if got := c.settle(); got != "clusters -b" {
			t.Errorf("got %q", got)
		}
		b.wantSubscriptions(t)
		b.Withhold(shared)
		c.wantNothing()
		b.wantSubscriptions(t, web)
		b.answer("10.0.0.3")
		c.ack(c.want("endpoints " + web))
	})
}

// A rejection of endpoints does not keep others back.
func TestRejectedEndpointsByName(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.envoy(t)
		defer c.close()
		c.subscribe(endpoints, cart, web)
		c.wantNothing()
		b.answer("10.0.0.1")
		c.nack(c.want("endpoints "+cart+" "+web), "no")
		c.nack(c.want("endpoints "+cart), "no")
		c.ack(c.want("endpoints " + web))
		elapse(time.Minute)
		c.wantNothing()
	})
}

// The clusters and the reports for a Gateway are limited, and so are the endpoints of a
// namespace's clusters.
func TestLimitsByName(t *testing.T) {
	const most = 50_000
	withBed(t, func(t *testing.T, b *bed) {
		name := func(namespace string, i int) string { return fmt.Sprintf("s.%s.web.80.%016x", namespace, i) }
		c := b.envoy(t)
		defer c.close()
		c.subscribe(endpoints, name("small", 1), name("small", 2))
		c.wantNothing()
		if got := b.Subscriptions(shared, allServices).Limits["small"]; got != envoy.MaxEndpointsPerNamespace/2 {
			t.Errorf("a cluster can have %d endpoints", got)
		}
		var many []string
		for i := range most {
			many = append(many, name("large", i))
		}
		c.more(endpoints, many...)
		c.wantNothing()
		found := b.Subscriptions(shared, allServices)
		want := map[string]int{"small": envoy.MaxEndpointsPerNamespace / 2, "large": envoy.MinEndpointsPerCluster}
		if len(found.Clusters) != most || !maps.Equal(found.Limits, want) {
			t.Errorf("there are %d clusters with the limits %v, want %d with %v", len(found.Clusters), found.Limits, most, want)
		}
		b.subscriptions()
		for i := range 100 {
			c.request(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: endpoints, ResourceNamesUnsubscribe: []string{name("large", i)}})
			c.more(endpoints, name("other", i))
		}
		c.wantNothing()
		if got := b.subscriptions(); got < 1 || got > 5 {
			t.Errorf("100 changes were reported %d times", got)
		}
		elapse(10 * time.Second) // a sweep reports the last ones
		if got := b.subscriptions(); got != 1 {
			t.Errorf("the last changes were reported %d times, want once", got)
		}
	})
}

// Names that are answered count towards the limits on names.
func TestNamesAreStillLimited(t *testing.T) {
	withBed(t, func(t *testing.T, b *bed) {
		c := b.envoy(t)
		defer c.close()
		var names []string
		for i := range 200_001 {
			names = append(names, fmt.Sprintf("s.shop.web.80.%016x", i))
		}
		c.subscribe(endpoints, names...)
		if got := status.Code(c.ended()); got != codes.ResourceExhausted {
			t.Errorf("the stream ended with %s", got)
		}
		b.wantSubscriptions(t)
	})
}
