package envoy

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// shardedHostnames is the number of hostnames that exist only to make shards.
const shardedHostnames = 600

// withShards returns the table with so many further hostnames that it has several shards. Each
// responds with the status 410.
func withShards(t *routing.Table) *routing.Table {
	large := *t
	route, gone := &routing.Route{Kind: routing.KindHTTPRoute}, &routing.Action{Status: http.StatusGone}
	for i := range shardedHostnames {
		hostname := fmt.Sprintf("app-%d.shards.example.com", i)
		large.Groups = append(large.Groups, routing.Group{Hostname: hostname, Entries: []*routing.Entry{
			{Hostname: hostname, Match: &routing.Match{}, Action: gone, Source: routing.Source{Route: route}},
		}})
	}
	return &large
}

// The filter and the renderer agree on the bucket of every hostname, in all forms of a host.
// A bucket that the visitor sends does not change that.
func TestEveryHostnameIsInItsShard(t *testing.T) {
	b := start(t)
	if shards := len(envoy.Render(b.table).Routes); shards < 5 {
		t.Fatalf("%d RouteConfigurations for both listeners", shards)
	}
	for i := range shardedHostnames {
		hostname := fmt.Sprintf("app-%d.shards.example.com", i)
		forms := []string{hostname, strings.ToUpper(hostname), hostname + ":8443", hostname + ":", hostname + ".", hostname + ".:443"}
		r := request{method: http.MethodGet, host: forms[i%len(forms)], target: "/"}
		r.lines = []string{fmt.Sprintf("X-Envoy-Bucket: open/%d", i%128), "x-envoy-bucket: open/start", "Connection: x-envoy-bucket"}
		if o := send(t, b.open, r.text()); o.status != http.StatusGone {
			t.Errorf("host %q: status %d", r.host, o.status)
		}
		if o := send(t, b.protected, r.text()); o.status != http.StatusNotFound && o.status != http.StatusForbidden {
			t.Errorf("host %q on the protected listener: status %d", r.host, o.status)
		}
	}
}

// Hosts that are no hostnames belong to the wildcard for all other hosts, which stands in every
// shard.
func TestOddHostsFailInNoShard(t *testing.T) {
	run(t, []row{
		{"GET bücher.example.org/", "400"},
		{"GET xn--bcher-kva.example.org/", "200 five GET /"},
		{"GET [::1]/", "200 five GET /"},
		{"GET [::1]:443/", "200 five GET /"},
		{"GET []/", "200 five GET /"},
		{"GET a]b:1/", "200 five GET /"},
		{"GET :443/", "200 five GET /"},
		{"GET a:b:c/", "200 five GET /"},
		{"GET " + strings.Repeat("a.", 2000) + "org/", "200 five GET /"},
		{"GET a.hosts.example.com,b.hosts.example.com/", "200 two GET /"},
		{"GET app-600.shards.example.com/", "404"},
		{"GET x.app-1.shards.example.com/", "404"},
	})
	b := start(t)
	if o := send(t, b.open, "GET / HTTP/1.1\r\nHost:\r\n\r\n"); o.status != http.StatusOK || o.arrival.Backend != "five" {
		t.Errorf("an empty host: status %d from %v", o.status, o.arrival)
	}
	if o := send(t, b.open, "GET / HTTP/1.1\r\n\r\n"); o.status != http.StatusBadRequest {
		t.Errorf("no host: status %d from %v", o.status, o.arrival)
	}
}

// For every hostname, Envoy accepts no protocol but WebSocket: with another one, a visitor could
// send requests to a backend that Envoy does not see.
func TestUnknownUpgradesAreRefused(t *testing.T) {
	b := start(t)
	for _, host := range []string{"a.hosts.example.com", "app-1.shards.example.com", "unknown.example.com", "other.example.org"} {
		for _, protocol := range []string{"unknown", "websocket, h2c"} {
			r := request{method: http.MethodGet, host: host, target: "/", lines: []string{"Connection: Upgrade", "Upgrade: " + protocol}}
			if o := send(t, b.open, r.text()); o.status != http.StatusForbidden || o.arrival != nil {
				t.Errorf("%s, upgrade to %s: status %d from %v", host, protocol, o.status, o.arrival)
			}
		}
	}
	run(t, []row{{"GET a.hosts.example.com/\nConnection: Upgrade\nUpgrade: h2c", "200 two GET /\n>"}}) // no upgrade
}
