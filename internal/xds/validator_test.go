package xds

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// A publication gives the same snapshot, regardless of which messages it shares with the last one.
func TestSharedMessagesGiveTheSameSnapshot(t *testing.T) {
	w := &publications{Rand: rand.New(rand.NewPCG(1, 3)), messages: map[string]proto.Message{}} //nolint:gosec // a test
	shared := &validator{}
	for i := range 300 {
		p := w.next()
		got, err := shared.newSnapshot(p)
		if err != nil {
			if _, err := (&validator{}).newSnapshot(p); err == nil {
				t.Fatalf("publication %d is valid on a new server only", i)
			}
			continue
		}
		fresh := &validator{}
		want, err := fresh.newSnapshot(p)
		if err != nil {
			t.Fatalf("publication %d is not valid on a new server: %v", i, err)
		}
		for k := range kinds {
			isEqual := func(a, b *resource) bool { return proto.Equal(a, b) }
			if !maps.EqualFunc(got.byKind[k].all, want.byKind[k].all, isEqual) {
				t.Fatalf("publication %d has other %s: %v, want %v", i, k.label(), slices.Sorted(maps.Keys(got.byKind[k].all)), slices.Sorted(maps.Keys(want.byKind[k].all)))
			}
		}
		if !maps.Equal(shared.hosts, fresh.hosts) {
			t.Fatalf("after publication %d, the validator knows %d virtual hosts, want %d", i, len(shared.hosts), len(fresh.hosts))
		}
	}
}

// publications share messages at random.
type publications struct {
	*rand.Rand
	messages map[string]proto.Message
}

// shared returns a message that is often the same object as before, and sometimes another one
// with the same content.
func shared[T proto.Message](w *publications, key string, create func() T) T {
	if m, ok := w.messages[key].(T); ok && w.IntN(4) > 0 {
		return m
	}
	m := create()
	w.messages[key] = m
	return m
}

func (w *publications) next() *Publication {
	p := &Publication{Resources: &envoy.Resources{}, Assignments: envoy.Assignments{}}
	for i := range 6 {
		name, variant := fmt.Sprint("cluster", i), w.IntN(3)
		if variant == 0 {
			continue
		}
		p.Resources.Clusters = append(p.Resources.Clusters, shared(w, fmt.Sprint(name, variant), func() *clusterv3.Cluster {
			return &clusterv3.Cluster{Name: name, ConnectTimeout: durationpb.New(time.Duration(variant) * time.Second)}
		}))
		p.Resources.Endpoints = append(p.Resources.Endpoints, envoy.EndpointsOf{Cluster: name})
		if w.IntN(2) == 0 {
			p.Assignments[name] = shared(w, fmt.Sprint("assignment", i, variant), func() *endpointv3.ClusterLoadAssignment {
				return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: slices.Repeat([]*endpointv3.LocalityLbEndpoints{{}}, variant-1)}
			})
		}
	}
	w.addRoutes(p)
	return p
}

// addRoutes adds RouteConfigurations with virtual hosts that move between them. Rarely, one
// is not valid.
func (w *publications) addRoutes(p *Publication) {
	for shard := range 1 + w.IntN(3) {
		c := &routev3.RouteConfiguration{Name: fmt.Sprint("open.", shard)}
		key := c.Name
		for host := range 4 {
			variant := w.IntN(3)
			if variant == 0 {
				continue
			}
			name := fmt.Sprint("host", host, "-", variant)
			if w.IntN(200) == 0 {
				name = ""
			}
			key += "," + name
			c.VirtualHosts = append(c.VirtualHosts, &routev3.VirtualHost{Name: name, Domains: []string{name}})
		}
		c = shared(w, key, func() *routev3.RouteConfiguration { return c })
		p.Resources.Routes = append(p.Resources.Routes, c)
		p.Resources.Scopes = append(p.Resources.Scopes, shared(w, "scope "+c.Name, func() *routev3.ScopedRouteConfiguration {
			return &routev3.ScopedRouteConfiguration{
				Name: "warming/" + c.Name, RouteConfigurationName: c.Name,
				Key: &routev3.ScopedRouteConfiguration_Key{Fragments: []*routev3.ScopedRouteConfiguration_Key_Fragment{
					{Type: &routev3.ScopedRouteConfiguration_Key_Fragment_StringKey{StringKey: c.Name}},
				}},
			}
		}))
	}
	slices.Reverse(p.Resources.Routes)
}
