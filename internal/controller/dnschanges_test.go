package controller

import (
	"slices"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
)

// A change affects only the zones of the hostnames that differ.
func TestAffectedZones(t *testing.T) {
	example, other := zoneKey{account: "account", name: "example.com"}, zoneKey{account: "account", name: "example.net"}
	a, b, c := dns.Hostname{Name: "a.example.com"}, dns.Hostname{Name: "b.example.net"}, dns.Hostname{Name: "c.example.com"}
	served := b
	served.Served = true
	for _, tt := range []struct {
		name          string
		before, after []dns.Hostname
		want          []zoneKey
	}{
		{"nothing has changed", []dns.Hostname{a, b, c}, []dns.Hostname{a, b, c}, nil},
		{"the first hostname is new", []dns.Hostname{b}, []dns.Hostname{a, b}, []zoneKey{example}},
		{"the last hostname is new", []dns.Hostname{a}, []dns.Hostname{a, b}, []zoneKey{other}},
		{"a hostname is gone", []dns.Hostname{a, b, c}, []dns.Hostname{a, c}, []zoneKey{other}},
		{"the last hostnames are gone", []dns.Hostname{a, b, c}, nil, []zoneKey{example, other}},
		{"a hostname was replaced", []dns.Hostname{a, c}, []dns.Hostname{b, c}, []zoneKey{example, other}},
		{"a hostname is served", []dns.Hostname{a, b, c}, []dns.Hostname{a, served, c}, []zoneKey{other}},
	} {
		if got := affectedZones([]zoneKey{example, other}, dns.Gateway{Hostnames: tt.before}, dns.Gateway{Hostnames: tt.after}); !slices.Equal(got, tt.want) {
			t.Errorf("%s: the affected zones are %v, want %v", tt.name, got, tt.want)
		}
	}
}
