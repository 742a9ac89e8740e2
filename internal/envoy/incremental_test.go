package envoy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// changingTable is a table that changes at random. Unchanged entries stay the same objects.
type changingTable struct {
	*rand.Rand
	table      *routing.Table
	transition Transition
}

func newChangingTable(seed uint64) *changingTable {
	c := &changingTable{Rand: rand.New(rand.NewPCG(seed, 42)), table: &routing.Table{ClusterDomain: "cluster.local"}} //nolint:gosec // the test must be reproducible
	c.resize(1 + c.IntN(600))
	return c
}

// resize makes the table have so many exact hostnames below wildcards.
func (c *changingTable) resize(hostnames int) {
	c.table.Groups = nil
	for i := range hostnames {
		c.table.Groups = append(c.table.Groups, c.group(fmt.Sprintf("app-%d.example.com", i)))
	}
	for _, wildcard := range []string{"*.example.com", ""} {
		if c.IntN(2) == 0 {
			c.table.Groups = append(c.table.Groups, c.group(wildcard))
		}
	}
}

func (c *changingTable) group(hostname string) routing.Group {
	g := routing.Group{Hostname: hostname, Namespace: "team"}
	for range c.IntN(3) {
		g.Entries = append(g.Entries, c.entry(hostname))
	}
	return g
}

func (c *changingTable) entry(hostname string) *routing.Entry {
	kind := routing.KindHTTPRoute
	if c.IntN(5) == 0 {
		kind = routing.KindGRPCRoute
	}
	e := &routing.Entry{
		Hostname: hostname, Match: &routing.Match{Path: routing.Path{Value: fmt.Sprintf("/%d", c.IntN(5))}},
		Source: routing.Source{Route: &routing.Route{Kind: kind, NamespacedName: types.NamespacedName{Namespace: "team", Name: "web"}}},
		Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: c.backend(), Weight: 1}}}},
	}
	switch c.IntN(5) {
	case 0:
		e.Action = &routing.Action{Redirect: &routing.Redirect{Scheme: "https", Status: 302}}
	case 1:
		e.Action.Forward.Backends = append(e.Action.Forward.Backends, routing.WeightedBackend{Status: 500, Weight: 2})
	case 2:
		e.Action.Forward.Filters = &routing.Filters{Mirrors: []routing.Mirror{{Backend: c.backend(), Numerator: 1, Denominator: 2}}}
	}
	return e
}

// backend returns a backend, now and then with the addresses of its pods, a name that Envoy looks
// up, or TLS.
func (c *changingTable) backend() routing.Backend {
	b := routing.Backend{
		Service:  types.NamespacedName{Namespace: "team", Name: fmt.Sprintf("web-%d", c.IntN(40))},
		Protocol: routing.ProtocolHTTP, Port: 80, ServicePort: 80, ClusterIP: "10.96.0.1",
	}
	switch c.IntN(6) {
	case 0:
		b.Headless, b.ClusterIP = true, ""
	case 1:
		b.ClusterIP = ""
	case 2:
		b.Protocol = routing.ProtocolHTTPS
	}
	return b
}

// change changes the table, and returns what has changed.
func (c *changingTable) change() string {
	next := *c.table
	next.Groups = slices.Clone(c.table.Groups)
	c.table = &next
	switch c.IntN(8) {
	case 0:
		c.resize(1 + c.IntN(600))
		return "all hostnames"
	case 1:
		next.ClientCertificate = &routing.ClientCertificate{}
		return "the client certificate"
	case 2:
		next.OriginRequest = &v1alpha1.OriginRequest{HTTPHostHeader: new(fmt.Sprint(c.IntN(3)))}
		return "settings"
	case 3:
		next.Telemetry.Tracing = &v1alpha1.Tracing{Endpoint: fmt.Sprintf("http://collector-%d.example.svc:4317", c.IntN(2))}
		return "tracing"
	case 4:
		next.Access = routing.Access{"*.example.com": nil}
		for range c.IntN(5) {
			next.Access[fmt.Sprintf("app-%d.example.com", c.IntN(600))] = []*routing.Requirement{{TeamName: "t", AUDTags: []string{"a"}}, {Closed: true}, {Waiting: true}}[c.IntN(3)]
		}
		return "Access"
	case 5:
		c.transition = Transition{Hostnames: []string{"new.example.com"}, Placements: map[string]Placement{"app-0.example.com": {Open: Serving(c.IntN(4)), Protected: Served}}}
		return "the transition"
	}
	i := c.IntN(len(next.Groups))
	next.Groups[i] = c.group(next.Groups[i].Hostname)
	return next.Groups[i].Hostname
}

// Over any changes, resources that were rendered with the last ones equal those without: all
// messages, and the lists of endpoints and looked-up names. Only kept hosts depend on the past.
func TestIncrementalResourcesEqualThoseOfTheTable(t *testing.T) {
	shared := 0
	for seed := range uint64(15) {
		c := newChangingTable(seed)
		var last *Resources
		for range 12 {
			what := c.change()
			next := RenderTransition(c.table, c.transition, last)
			whole := RenderTransition(c.table, c.transition, pastOf(last))
			if problem := difference(next, whole); problem != "" {
				t.Fatalf("seed %d, %s changes: %s", seed, what, problem)
			}
			shared += next.countShared(last)
			last = next
		}
	}
	if shared < 300 {
		t.Errorf("only %d RouteConfigurations were shared", shared)
	}
}

// pastOf returns resources without anything that later ones can share, but with the routes of
// each hostname.
func pastOf(r *Resources) *Resources {
	if r == nil {
		return nil
	}
	past := &Resources{}
	for _, h := range r.hosts {
		c := *h
		c.open, c.protected, c.placement.Protected = proto.CloneOf(h.open), proto.CloneOf(h.protected), -1
		past.hosts = append(past.hosts, &c)
	}
	return past
}

func difference(a, b *Resources) string {
	equal := func(a, b proto.Message) bool { return proto.Equal(a, b) }
	switch {
	case !slices.EqualFunc(a.Routes, b.Routes, func(a, b *routev3.RouteConfiguration) bool { return equal(a, b) }):
		return fmt.Sprintf("the routes are %v, want %v", a.Routes, b.Routes)
	case !slices.EqualFunc(a.Scopes, b.Scopes, func(a, b *routev3.ScopedRouteConfiguration) bool { return equal(a, b) }):
		return "the scopes differ"
	case len(a.Clusters) != len(b.Clusters):
		return fmt.Sprintf("%d clusters, want %d", len(a.Clusters), len(b.Clusters))
	case !slices.Equal(a.Endpoints, b.Endpoints):
		return fmt.Sprintf("the endpoints are %v, want %v", a.Endpoints, b.Endpoints)
	case !slices.Equal(a.ByName, b.ByName):
		return fmt.Sprintf("Envoy looks up %v, want %v", a.ByName, b.ByName)
	case (a.ClientCertificate == nil) != (b.ClientCertificate == nil):
		return "the client certificate differs"
	}
	for i := range a.Clusters {
		if !equal(a.Clusters[i], b.Clusters[i]) {
			return fmt.Sprintf("the cluster is %v, want %v", a.Clusters[i], b.Clusters[i])
		}
	}
	return ""
}

func (r *Resources) countShared(last *Resources) (n int) {
	if last == nil {
		return 0
	}
	for _, c := range r.Routes {
		if slices.Contains(last.Routes, c) {
			n++
		}
	}
	return n
}

// A change of one hostname changes one RouteConfiguration. Everything else is the same object,
// also if the entries are equal and not the same.
func TestOneChangeChangesOneShard(t *testing.T) {
	c := newChangingTable(1)
	c.resize(1000)
	last := Render(c.table)
	again := *c.table
	again.Groups = slices.Clone(c.table.Groups)
	for i := range again.Groups {
		entries := slices.Clone(again.Groups[i].Entries)
		for j, e := range entries {
			clone := *e
			entries[j] = &clone
		}
		again.Groups[i].Entries = entries
	}
	if next := RenderTransition(&again, Transition{}, last); next.countShared(last) != len(last.Routes) || !slices.Equal(next.Clusters, last.Clusters) || !slices.Equal(next.Scopes, last.Scopes) {
		t.Errorf("equal entries share %d of %d RouteConfigurations", next.countShared(last), len(last.Routes))
	}
	again.Groups[7].Entries = []*routing.Entry{c.entry(again.Groups[7].Hostname)}
	if next := RenderTransition(&again, Transition{}, last); next.countShared(last) != len(last.Routes)-1 {
		t.Errorf("one changed hostname leaves %d of %d RouteConfigurations", next.countShared(last), len(last.Routes))
	}
	if next := last.Close([]string{c.table.Groups[8].Hostname, "unknown"}); next.countShared(last) != len(last.Routes)-1 || next.IsOpen(c.table.Groups[8].Hostname) {
		t.Errorf("a closed hostname leaves %d of %d RouteConfigurations", next.countShared(last), len(last.Routes))
	}
}
