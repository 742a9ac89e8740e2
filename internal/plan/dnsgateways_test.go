package plan_test

import (
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// managing makes the GatewayClass of gatewayFor manage example.com.
func managing(manifest string) string {
	return strings.Replace(manifest, "spec: {}", "spec: {dns: {mode: Manage, zones: [{name: example.com}]}}", 1)
}

func TestDNSGatewaysHaveHostnamesSettingsAndTunnels(t *testing.T) {
	c := newAccount(t)
	object := tunnelObject("tunnelID: " + string(c.id) + ", dns: {hostnames: {Managed: 1}}")
	got := planOf(t, managing(gatewayFor("a.example.com", "")), object).DNSGateways()
	if len(got) != 1 {
		t.Fatalf("%d Gateways, want 1", len(got))
	}
	g := got[0]
	if g.String() != "infra/g" || g.Class != "cloudflare-tunnel" || g.Tunnel != c.id || g.State != dns.Accepted {
		t.Errorf("got %+v", g.Gateway)
	}
	if len(g.Hostnames) != 1 || g.Hostnames[0].Name != "a.example.com" || !g.Hostnames[0].Served || g.Hostnames[0].Namespace != "infra" {
		t.Errorf("hostnames %+v", g.Hostnames)
	}
	if g.Settings.Mode != v1alpha1.DNSManage || len(g.Settings.Zones) != 1 || g.AccountID != fake.AccountID || g.ClusterID != "c" || g.Status.Hostnames["Managed"] != 1 {
		t.Errorf("got settings %+v, account %q, cluster ID %q, status %+v", g.Settings, g.AccountID, g.ClusterID, g.Status)
	}
}

func TestDNSGatewaysOfPausedAndNewGateways(t *testing.T) {
	for name, test := range map[string]struct {
		manifests []string
		want      plan.DNSGateway
	}{
		"paused": {[]string{managing(gatewayFor("a.example.com", paused)), tunnelObject("tunnelID: x")}, plan.DNSGateway{Gateway: dns.Gateway{State: dns.Frozen, Tunnel: "x"}, AccountID: fake.AccountID}},
		"new":    {[]string{managing(gatewayFor("a.example.com", ""))}, plan.DNSGateway{Gateway: dns.Gateway{State: dns.Accepted}, AccountID: fake.AccountID}},
	} {
		t.Run(name, func(t *testing.T) {
			got := planOf(t, test.manifests...).DNSGateways()
			if len(got) != 1 || got[0].State != test.want.State || got[0].Tunnel != test.want.Tunnel || got[0].AccountID != test.want.AccountID || got[0].Status != nil {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
