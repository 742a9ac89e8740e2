package ingress_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// tableOf returns a table with the hostnames, of which the protected ones require Access.
func tableOf(hostnames, protected string) *routing.Table {
	t := &routing.Table{Access: routing.Access{}}
	for _, hostname := range strings.Fields(hostnames) {
		t.Groups = append(t.Groups, routing.Group{Hostname: hostname, Entries: []routing.Entry{{Hostname: hostname, Match: &routing.Match{}, Action: &routing.Action{Status: 404},
			Source: routing.Source{Route: &routing.Route{Kind: routing.KindHTTPRoute}}}}})
	}
	for _, hostname := range strings.Fields(protected) {
		t.Access[hostname] = &v1alpha1.Access{Required: true}
	}
	return t
}

// servedOf returns what Envoy serves when it serves the hostnames on each listener.
func servedOf(all, open, protected string) ingress.Served {
	s := ingress.Served{Open: map[string]bool{}, Protected: map[string]bool{}}
	for _, hostname := range strings.Fields(all) {
		s.Open[hostname] = slices.Contains(strings.Fields(open), hostname)
		s.Protected[hostname] = slices.Contains(strings.Fields(protected), hostname)
	}
	return s
}

func TestMoving(t *testing.T) {
	const both = "a.example.com b.example.com"
	for name, c := range map[string]struct {
		table   *routing.Table
		current *provider.Configuration // nil when it is unknown
		served  ingress.Served
		want    string
	}{
		"nothing changes": {
			tableOf(both, "a.example.com"), ingress.EnvoyConfiguration(tableOf(both, "a.example.com")),
			servedOf(both, "b.example.com", "a.example.com"), "",
		},
		"a served hostname gets Access": {
			tableOf(both, "a.example.com"), ingress.EnvoyConfiguration(tableOf(both, "")), servedOf(both, both, ""), "a.example.com",
		},
		"it stays until Cloudflare has the rules": {
			tableOf(both, "a.example.com"), ingress.EnvoyConfiguration(tableOf(both, "")), servedOf(both, both, "a.example.com"), "a.example.com",
		},
		"a hostname loses Access": {
			tableOf(both, ""), ingress.EnvoyConfiguration(tableOf(both, "a.example.com")), servedOf(both, "b.example.com", "a.example.com"), "a.example.com",
		},
		"a new hostname has Access": {
			tableOf(both, "a.example.com"), ingress.EnvoyConfiguration(tableOf("b.example.com", "")), servedOf("b.example.com", "b.example.com", ""), "",
		},
		"a hostname below an open wildcard gets Access": {
			tableOf("a.example.com *.example.com", "a.example.com"), ingress.EnvoyConfiguration(tableOf("*.example.com", "")),
			servedOf("*.example.com", "*.example.com", ""), "a.example.com",
		},
		"a hostname loses Access, and this process has published nothing yet": {
			tableOf(both, ""), ingress.EnvoyConfiguration(tableOf(both, "a.example.com")), ingress.Served{}, "a.example.com",
		},
		"a hostname gets Access, and this process has published nothing yet": {
			tableOf(both, "a.example.com"), ingress.EnvoyConfiguration(tableOf(both, "")), ingress.Served{}, "",
		},
		"the configuration at Cloudflare is unknown": {
			tableOf(both, "a.example.com"), nil, servedOf(both, both, ""), "a.example.com",
		},
		"the tunnel has ingress rules": {
			tableOf(both, "a.example.com"), &provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:404"}}}, servedOf(both, both, ""), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(slices.Sorted(maps.Keys(ingress.Moving(c.table, c.current, c.served))), " ")
			if got != c.want {
				t.Errorf("both listeners serve %q, want %q", got, c.want)
			}
		})
	}
}

func TestPendingAccess(t *testing.T) {
	const hostnames = "a.example.com b.example.com *.example.org"
	for name, c := range map[string]struct{ desired, current, want string }{
		"nothing":        {"a.example.com", "a.example.com", ""},
		"added":          {"a.example.com b.example.com", "a.example.com", "b.example.com"},
		"removed":        {"a.example.com", "a.example.com *.example.org", "*.example.org"},
		"other hostname": {"a.example.com", "b.example.com", "a.example.com b.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			desired, current := ingress.EnvoyConfiguration(tableOf(hostnames, c.desired)), ingress.EnvoyConfiguration(tableOf(hostnames, c.current))
			if got := strings.Join(ingress.PendingAccess(*desired, *current), " "); got != c.want {
				t.Errorf("Access of %q is pending, want %q", got, c.want)
			}
		})
	}
}
