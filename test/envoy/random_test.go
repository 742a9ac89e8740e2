package envoy

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// A failure states the seed and the request: -run 'TestRandomClusters/seed=7$' repeats that cluster.
var randomClusters = flag.Uint64("clusters", 24, "random clusters for the real Envoy")

// randomCluster is a table, and the address on which its listener serves it.
type randomCluster struct {
	seed    uint64
	table   *routing.Table
	hosts   map[string]bool // in the virtual hosts
	address string
}

// TestRandomClusters compares Envoy's responses to random requests with the routing
// tables for random clusters.
func TestRandomClusters(t *testing.T) {
	all, cases := startRandomClusters(t), map[string]int{}
	for _, c := range all {
		t.Run(fmt.Sprintf("seed=%d", c.seed), func(t *testing.T) {
			d := randomizer{rand.New(rand.NewPCG(c.seed, 1))} //nolint:gosec // the test must be reproducible
			for range 60 {
				c.check(t, d.request(), cases)
			}
		})
	}
	for _, name := range []string{
		"http of both protocols", "https of both protocols", "redirect", "backend", "404",
		"port 443 without a scheme for http", "redirect to https of a Host with a port", "// and Exact /", "Origin with its default port",
	} {
		if cases[name] == 0 && !t.Failed() {
			t.Errorf("no request has the case %q: %v", name, cases)
		}
	}
}

// startRandomClusters starts one Envoy that serves all clusters' tables, each on its own
// listener.
func startRandomClusters(t *testing.T) []*randomCluster {
	t.Helper()
	path, services := findEnvoy(t), randomServices()
	b := &bed{dir: t.TempDir()}
	var err error
	if b.backends, err = startBackends(objectsOf(services), b.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.backends.close)
	var all []*randomCluster
	var addresses []string
	var static staticConfiguration
	for seed := range *randomClusters {
		d := randomizer{rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the test must be reproducible
		c := &randomCluster{seed: seed, table: gateway.Build(d.snapshot(services), options).Table, hosts: map[string]bool{}}
		if c.table == nil {
			continue // the Gateway is not accepted
		}
		for _, h := range c.table.Hosts() {
			c.hosts[h.Hostname] = true
		}
		if err := static.add(c, b.backends, services); err != nil {
			t.Fatal(err)
		}
		all, addresses = append(all, c), append(addresses, c.address)
	}
	if b.configuration, err = static.text(); err != nil {
		t.Fatal(err)
	}
	if err := b.run(path, addresses...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.process.Kill()
		<-b.process.Exited()
	})
	return all
}

// staticConfiguration configures an Envoy with a listener for each table.
type staticConfiguration struct {
	base                map[string]any
	listeners, clusters []any
	used                map[any]bool // listener addresses, and cluster names
}

// add adds a table's open listener and clusters.
func (s *staticConfiguration) add(c *randomCluster, backends *backends, services map[types.NamespacedName]*corev1.Service) error {
	rendered := envoy.Render(c.table)
	assignments := rendered.Assign(
		func(of envoy.EndpointSource) []*discoveryv1.EndpointSlice {
			return []*discoveryv1.EndpointSlice{onlyPod(services[of.NamespacedName])}
		},
		func(string) bool { return false })
	text, err := protojson.Marshal(envoy.Static(rendered, assignments))
	if err != nil {
		return err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return err
	}
	for c.address == "" || s.used[c.address] {
		if c.address, err = freeAddress(); err != nil {
			return err
		}
	}
	addresses := map[string]string{net.JoinHostPort("127.0.0.1", strconv.Itoa(envoy.PortOpen)): c.address}
	for address, listener := range backends.addresses {
		addresses[address] = listener
	}
	resources := tree["staticResources"].(map[string]any)
	if s.base == nil {
		s.base, s.used = tree, map[any]bool{}
	}
	s.used[c.address] = true
	for _, l := range resources["listeners"].([]any) {
		if listener := l.(map[string]any); listener["name"] == envoy.ListenerOpen {
			listener["name"] = fmt.Sprintf("open-%d", c.seed)
			s.listeners = append(s.listeners, listener)
			err = replaceAddresses(listener["address"], addresses)
		}
	}
	clusters, _ := resources["clusters"].([]any) // a table may have none
	for _, cluster := range clusters {
		if name := cluster.(map[string]any)["name"]; !s.used[name] {
			s.used[name] = true
			s.clusters = append(s.clusters, cluster)
			err = errors.Join(err, replaceAddresses(cluster, addresses))
		}
	}
	return err
}

func (s *staticConfiguration) text() (string, error) {
	s.base["staticResources"] = map[string]any{"listeners": s.listeners, "clusters": s.clusters}
	text, err := json.Marshal(s.base)
	return string(text), err
}

// check sends a request, and compares the outcome with the table's answer. It counts the
// cases that the request covers.
func (c *randomCluster) check(t *testing.T, r request, cases map[string]int) {
	t.Helper()
	routed, err := r.routed()
	if err != nil {
		t.Fatal(err)
	}
	o := send(t, c.address, r.text())
	problem := compareWithAnswer(c.table, r, o, false)
	entry, _ := c.table.Answer(routed)
	if entry != nil && entry.Action.Redirect != nil {
		problem = c.compareLocation(entry, r, routed, o)
	}
	if problem == "" && entry != nil && entry.Action.CORS != nil {
		problem = compareOrigin(r, o)
	}
	if problem != "" {
		t.Errorf("%s: status %d, headers %q, arrival %+v: %s", strings.ReplaceAll(r.text(), "\r\n", ", "), o.status, o.headers, o.arrival, problem)
	}
	for _, name := range c.casesOf(entry, r, routed) {
		cases[name]++
	}
}

// compareLocation compares a redirect. docs/deviations.md lists the ports that Envoy adds.
func (c *randomCluster) compareLocation(entry *routing.Entry, r request, routed routing.Request, o outcome) string {
	redirect := entry.Action.Redirect
	_, port, hasPort := strings.Cut(r.host, ":")
	hostname, _ := routing.MostSpecific(c.hosts, routed.Host)
	copiesHost := redirect.Hostname == "" && (hostname == "" || strings.HasPrefix(hostname, "*."))
	switch {
	case !copiesHost:
	case redirect.Scheme == "" && redirect.Port == 0 && hasPort:
		routed.Host += ":" + port
	case redirect.LocationPort(routed.Scheme) == 0 && hasPort:
		routed.Host += map[string]string{"http": ":80", "https": ":443"}[cmp.Or(redirect.Scheme, string(routed.Scheme))]
	}
	if target, _, _ := strings.Cut(r.target, "?"); target == "//" {
		routed.Path = target // Envoy does not merge slashes without anything else
	}
	want := "location: " + entry.Location(routed)
	isEqual := func(line string) bool { return strings.EqualFold(line, want) } // the request's host keeps its letter case
	ok := o.status == redirect.Status && slices.ContainsFunc(o.headers, isEqual)
	return differs(ok, "%s with %+v in the hostname %q redirects with status %d and %s", entry.Source.Describe(), *redirect, hostname, redirect.Status, want)
}

// compareOrigin compares whether the request's origin is permitted.
func compareOrigin(r request, o outcome) string {
	allowed := []string{"https://shop.example.org", "https://shop.example.org:443", "https://a.shop.example.org:443"}
	want := ""
	for _, line := range r.lines {
		if origin, ok := strings.CutPrefix(line, "Origin: "); ok && slices.Contains(allowed, origin) {
			want = "access-control-allow-origin: " + origin
		}
	}
	got := ""
	for _, line := range o.headers {
		if strings.HasPrefix(line, "access-control-allow-origin: ") {
			got = line
		}
	}
	return differs(got == want, "the permission is %q, want %q", got, want)
}

// casesOf returns the cases that a request covers. The random requests together must
// cover every case.
func (c *randomCluster) casesOf(entry *routing.Entry, r request, routed routing.Request) []string {
	if entry == nil {
		return []string{"404"}
	}
	var all []string
	add := func(condition bool, name string) {
		if condition {
			all = append(all, name)
		}
	}
	group, scheme := c.table.Group(routed.Host), routed.Scheme
	has := func(scheme routing.Scheme) bool {
		return slices.ContainsFunc(group.Entries, func(e *routing.Entry) bool { return e.Scheme == scheme })
	}
	add(has(routing.SchemeHTTP) && has(routing.SchemeHTTPS), string(scheme)+" of both protocols")
	add(entry.Action.Forward != nil, "backend")
	add(entry.Action.CORS != nil && slices.Contains(r.lines, "Origin: https://shop.example.org:443"), "Origin with its default port")
	target, _, _ := strings.Cut(r.target, "?")
	add(target == "//" && entry.Match.Path == routing.Path{Kind: routing.PathExact, Value: "/"}, "// and Exact /")
	if redirect := entry.Action.Redirect; redirect != nil {
		add(true, "redirect")
		add(redirect.Scheme == "" && redirect.Port == 443 && scheme == routing.SchemeHTTP, "port 443 without a scheme for http")
		add(redirect.Scheme == "https" && strings.Contains(r.host, ":8080"), "redirect to https of a Host with a port")
	}
	return all
}
