package envoy

import (
	"net/http"
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A closed hostname returns 403 for each request on both listeners. Neither a redirect nor a
// CORS filter answers first, and no other hostname changes.
func TestClosedHostnameReturns403OnBothListeners(t *testing.T) {
	route := &routing.Route{Kind: routing.KindHTTPRoute}
	entry := func(hostname string, action *routing.Action) routing.Entry {
		return routing.Entry{Hostname: hostname, Match: &routing.Match{}, Action: action, Source: routing.Source{Route: route}}
	}
	backend := routing.Backend{
		Service: types.NamespacedName{Namespace: "shop", Name: "pages"}, Port: 80, ServicePort: 80, Protocol: routing.ProtocolHTTP, ClusterIP: "10.0.0.1",
	}
	serves := &routing.Action{
		Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: backend, Weight: 1}}},
		CORS:    &routing.CORS{AllowOrigins: []string{"*"}},
	}
	redirects := &routing.Action{Redirect: &routing.Redirect{Scheme: "https", Status: http.StatusFound}}
	table := &routing.Table{
		ClusterDomain: "cluster.local",
		Groups: []routing.Group{
			{Hostname: "closed.example.com", Redirects: []*routing.Entry{new(entry("closed.example.com", redirects))}, Entries: []*routing.Entry{new(entry("closed.example.com", serves))}},
			{Hostname: "*.example.com", Entries: []*routing.Entry{new(entry("*.example.com", serves))}},
		},
		Access: routing.Access{"closed.example.com": {Closed: true}, "protected.example.com": {TeamName: "example", AUDTags: []string{"tag"}}},
	}
	resources := Render(table)
	for listener, c := range map[string]*routev3.RouteConfiguration{"open": Whole(ListenerOpen, resources.Routes), "protected": Whole(ListenerProtected, resources.Routes)} {
		found := false
		for _, host := range c.VirtualHosts {
			if host.Name != "closed.example.com" {
				if len(host.Routes) == 1 && host.Routes[0].GetDirectResponse() != nil {
					t.Errorf("%s: %s is closed, too", listener, host.Name)
				}
				continue
			}
			found = true
			if len(host.Routes) != 1 || host.Routes[0].GetDirectResponse().GetStatus() != http.StatusForbidden || host.Routes[0].Match.GetPrefix() != "/" {
				t.Errorf("%s: the routes are %v", listener, host.Routes)
			}
			if len(host.Routes[0].TypedPerFilterConfig)+len(host.TypedPerFilterConfig) > 0 {
				t.Errorf("%s: a filter can answer first: %v", listener, host)
			}
		}
		if !found {
			t.Errorf("%s: no virtual host is closed, so that a wider one answers", listener)
		}
	}
	if resources.IsOpen("closed.example.com") {
		t.Error("a closed hostname counts as open")
	}
}

// A hostname that waits for its protection serves the routes that it served before, and no
// other ones. Once nothing demands protection, it serves all of them.
func TestWaitingHostnameServesNothingNew(t *testing.T) {
	entry := func(prefix, service string) *routing.Entry {
		return &routing.Entry{
			Hostname: "a.example.com", Match: &routing.Match{Path: routing.Path{Value: prefix}},
			Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Weight: 1, Backend: routing.Backend{
				Service: types.NamespacedName{Namespace: "shop", Name: service}, Port: 80, ServicePort: 80, Protocol: routing.ProtocolHTTP, ClusterIP: "10.0.0.1",
			}}}}},
			Source: routing.Source{Route: &routing.Route{Kind: routing.KindHTTPRoute}},
		}
	}
	table := func(access *routing.Requirement, entries ...*routing.Entry) *routing.Table {
		return &routing.Table{
			ClusterDomain: "cluster.local", Groups: []routing.Group{{Hostname: "a.example.com", Entries: entries}},
			Access: routing.Access{"a.example.com": access},
		}
	}
	statuses := func(r *Resources) (open, protected []uint32) {
		for _, host := range Whole(ListenerOpen, r.Routes).VirtualHosts {
			for _, route := range host.Routes {
				open = append(open, route.GetDirectResponse().GetStatus()) // 0 if it forwards
			}
		}
		for _, host := range Whole(ListenerProtected, r.Routes).VirtualHosts {
			for _, route := range host.Routes {
				protected = append(protected, route.GetDirectResponse().GetStatus())
			}
		}
		return open, protected
	}
	before, added, waits := entry("/pages", "pages"), entry("/admin", "admin"), &routing.Requirement{Waiting: true}
	resources := RenderTransition(table(nil, before), Transition{}, nil)
	for name, step := range map[string]struct {
		table *routing.Table
		last  *Resources
		open  []uint32
	}{
		"nothing changes":         {table(waits, before), resources, []uint32{0}},
		"a route is added":        {table(waits, added, before), resources, []uint32{403, 0}},
		"the demand has gone":     {table(nil, added, before), RenderTransition(table(waits, added, before), Transition{}, resources), []uint32{0, 0}},
		"it was not open before":  {table(waits, before), nil, []uint32{403}},
		"a route comes back late": {table(waits, before), RenderTransition(table(waits), Transition{}, resources), []uint32{403, 403}},
	} {
		t.Run(name, func(t *testing.T) {
			open, protected := statuses(RenderTransition(step.table, Transition{}, step.last))
			if !slices.Equal(open, step.open) || len(protected) > 0 {
				t.Errorf("the open listener has the routes %v, want %v; the protected one has %v", open, step.open, protected)
			}
		})
	}
}

// Below a wildcard whose application covers one level, deeper hosts get 403 on the protected
// listener, unless they have a decision of their own.
func TestDeepHostsOfAWildcardAreClosed(t *testing.T) {
	entry := routing.Entry{
		Hostname: "*.example.com", Match: &routing.Match{}, Action: &routing.Action{Status: http.StatusOK},
		Source: routing.Source{Route: &routing.Route{Kind: routing.KindHTTPRoute}},
	}
	application := func(tag string, oneLevel bool) *routing.Requirement {
		return &routing.Requirement{TeamName: "example", AUDTags: []string{tag}, OneLevel: oneLevel}
	}
	table := &routing.Table{
		Groups: []routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{new(entry)}}},
		Access: routing.Access{"*.example.com": application("wide", true), "own.b.example.com": application("own", false)},
	}
	resources := RenderTransition(table, Transition{Hostnames: []string{"a.example.com", "y.a.example.com", "*.b.example.com"}}, nil)
	statuses := map[string][]uint32{}
	for _, host := range Whole(ListenerProtected, resources.Routes).VirtualHosts {
		for _, route := range host.Routes {
			statuses[host.Name] = append(statuses[host.Name], route.GetDirectResponse().GetStatus())
		}
	}
	for name, want := range map[string][]uint32{
		"a.example.com": {200}, "y.a.example.com": {403}, "*.b.example.com": {403}, "own.b.example.com": {200}, "*.example.com": {403, 200},
	} {
		if !slices.Equal(statuses[name], want) {
			t.Errorf("%s has routes with %v, want %v", name, statuses[name], want)
		}
	}
	for _, host := range Whole(ListenerProtected, resources.Routes).VirtualHosts {
		if host.Name != "*.example.com" {
			continue
		}
		guard := host.Routes[0].Match.Headers[0]
		if got := guard.GetStringMatch().GetSafeRegex().GetRegex(); !guard.InvertMatch || got != `[^.]+\.example\.com(:[0-9]*)?` {
			t.Errorf("the route that closes deep hosts matches %v", guard)
		}
	}
	for host, want := range map[string]bool{"a.example.com": false, "y.a.example.com": true, "own.b.example.com": false} {
		if got := table.Access.IsClosed(host); got != want {
			t.Errorf("%s is closed: %t", host, got)
		}
	}
}
