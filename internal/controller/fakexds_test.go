package controller

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// fakeXDS records what is published for Envoys.
type fakeXDS struct {
	publications []xds.Publication
	endpoints    []envoy.Assignments
	// subscriptions are names of clusters, and byName has the endpoints published for them.
	subscriptions []string
	byName        []envoy.Assignments
	removed       []string
	withheld      []string
	state         xds.State
	// unacknowledged means that an Envoy does not acknowledge the last publication.
	unacknowledged bool
	// err refuses every publication.
	err error
}

func (f *fakeXDS) Publish(p xds.Publication) error {
	if f.err != nil {
		f.state.Rejected = f.err.Error()
		return f.err
	}
	f.publications = append(f.publications, p)
	return nil
}

func (f *fakeXDS) PublishEndpoints(_ types.NamespacedName, _ types.UID, a envoy.Assignments) {
	f.endpoints = append(f.endpoints, a)
}

func (f *fakeXDS) Subscriptions(_ types.NamespacedName, source envoy.EndpointSource) xds.Subscriptions {
	found := xds.Subscriptions{Number: 1, Limits: map[string]int{"infra": 2}}
	for _, name := range f.subscriptions {
		if parsed, ok := envoy.ParseClusterName(name); ok && (source == parsed.Source || source.Name == "") {
			found.Clusters = append(found.Clusters, parsed)
		}
	}
	return found
}

func (f *fakeXDS) Subscribers(source envoy.EndpointSource) []types.NamespacedName {
	if len(f.Subscriptions(types.NamespacedName{}, source).Clusters) > 0 {
		return []types.NamespacedName{{Namespace: "infra", Name: "shared"}}
	}
	return nil
}

func (f *fakeXDS) PublishByName(_ types.NamespacedName, _ uint64, a envoy.Assignments) {
	f.byName = append(f.byName, a)
}

func (f *fakeXDS) Remove(gateway types.NamespacedName) {
	f.removed = append(f.removed, gateway.String())
}

func (f *fakeXDS) Withhold(gateway types.NamespacedName) {
	f.withheld = append(f.withheld, gateway.String())
}

func (f *fakeXDS) State(types.NamespacedName) xds.State {
	state := f.state
	state.Complete = state.Published && state.Connected > 0 && !f.unacknowledged
	return state
}

func (f *fakeXDS) last(t testing.TB) xds.Publication {
	t.Helper()
	if len(f.publications) == 0 {
		t.Fatal("nothing was published")
	}
	return f.publications[len(f.publications)-1]
}

// served returns the hostnames with routes in a RouteConfiguration that do not return
// 403.
func served(c *routev3.RouteConfiguration) string {
	return hostnamesWith(c, func(routes []*routev3.Route) bool { return slices.ContainsFunc(routes, isServing) })
}

// closed returns the hostnames with routes in a RouteConfiguration that all return 403.
func closed(c *routev3.RouteConfiguration) string {
	return hostnamesWith(c, func(routes []*routev3.Route) bool { return len(routes) > 0 && !slices.ContainsFunc(routes, isServing) })
}

func isServing(route *routev3.Route) bool {
	return route.GetDirectResponse().GetStatus() != http.StatusForbidden
}

func hostnamesWith(c *routev3.RouteConfiguration, filter func([]*routev3.Route) bool) string {
	var hostnames []string
	for _, host := range c.VirtualHosts {
		if filter(host.Routes) {
			hostnames = append(hostnames, host.Name)
		}
	}
	slices.Sort(hostnames)
	return strings.Join(hostnames, " ")
}

// fakeIdentities records the Tunnels whose certificates are written.
type fakeIdentities struct {
	written []types.UID
	// before is called before each write.
	before func()
	// err is the error of each write.
	err error
}

func (f *fakeIdentities) IsCurrent(_ context.Context, t *v1alpha1.Tunnel) (bool, error) {
	return slices.Contains(f.written, t.UID), nil
}

func (f *fakeIdentities) Write(_ context.Context, t *v1alpha1.Tunnel) error {
	if f.before != nil {
		f.before()
	}
	if f.err != nil {
		return f.err
	}
	f.written = append(f.written, t.UID)
	return nil
}
