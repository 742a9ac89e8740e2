package chart

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEgressAllowsWhatTheValuesName checks the ports that the NetworkPolicy allows.
func TestEgressAllowsWhatTheValuesName(t *testing.T) {
	const values = "cloudflare.accountID=" + account + ",cloudflare.existingSecret=cloudflare,cloudflare.baseURL="
	for name, test := range map[string]struct {
		set  string
		want []string // sorted ports
	}{
		"by default":                                  {"", []string{"TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
		"the port of the API server":                  {"networkPolicy.apiServerPort=16443", []string{"TCP 16443", "TCP 443", "TCP 53", "UDP 53"}},
		"an API server on the port of Cloudflare":     {"networkPolicy.apiServerPort=443", []string{"TCP 443", "TCP 53", "UDP 53"}},
		"an API URL with a port":                      {values + "https://api.example.com:8443/client/v4", []string{"TCP 443", "TCP 53", "TCP 6443", "TCP 8443", "UDP 53"}},
		"an API URL without TLS":                      {values + "http://api.example.com/client/v4", []string{"TCP 443", "TCP 53", "TCP 6443", "TCP 80", "UDP 53"}},
		"an API URL with a colon in its path":         {values + "https://api.example.com/v4:99", []string{"TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
		"an API URL without a path":                   {values + "http://api.example.com:6443", []string{"TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
		"an API URL with an IPv6 address":             {values + "http://[fd00::7]:81/v4", []string{"TCP 443", "TCP 53", "TCP 6443", "TCP 81", "UDP 53"}},
		"an API URL with an IPv6 address and no port": {values + "https://[fd00::7]/v4", []string{"TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
		"the port of the DNS pods":                    {"networkPolicy.dnsPorts={53,5353}", []string{"TCP 443", "TCP 53", "TCP 5353", "TCP 6443", "UDP 53", "UDP 5353"}},
		"an extra rule for a proxy":                   {"networkPolicy.extraEgress[0].ports[0].port=3128", []string{"TCP 443", "TCP 53", "TCP 6443", "UDP 53", "any 3128"}},
		"a trace collector":                           {"tracing.endpoint=http://collector:4317", []string{"TCP 4317", "TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
		"the port of the collector's pods":            {"tracing.endpoint=http://collector:4317,networkPolicy.tracingPort=14317", []string{"TCP 14317", "TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
		"a trace collector with an IPv6 address":      {"tracing.endpoint=http://[fd00::7]:4317", []string{"TCP 4317", "TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
		"without metrics":                             {"metrics.enabled=false", []string{"TCP 443", "TCP 53", "TCP 6443", "UDP 53"}},
	} {
		t.Run(name, func(t *testing.T) {
			policy := onlyObject(t, objects(t, render(t, "--set", test.set)), "NetworkPolicy")
			var got []string
			for _, rule := range childMap(policy, "spec")["egress"].([]any) {
				for _, port := range rule.(map[string]any)["ports"].([]any) {
					p := port.(map[string]any)
					protocol, ok := p["protocol"]
					if !ok {
						protocol = "any"
					}
					got = append(got, fmt.Sprint(protocol, " ", p["port"]))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the ports differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestExtraEgressIsRenderedVerbatim checks the rule in networkPolicy.extraEgress.
func TestExtraEgressIsRenderedVerbatim(t *testing.T) {
	policy := onlyObject(t, objects(t, render(t, "--values", "testdata/everything.values.yaml")), "NetworkPolicy")
	rules := childMap(policy, "spec")["egress"].([]any)
	want := map[string]any{
		"to":    []any{map[string]any{"ipBlock": map[string]any{"cidr": "192.0.2.0/24"}}},
		"ports": []any{map[string]any{"port": float64(3128), "protocol": "TCP"}},
	}
	if diff := cmp.Diff(any(want), rules[len(rules)-1]); diff != "" {
		t.Errorf("the rule differs (-value +policy):\n%s", diff)
	}
}
