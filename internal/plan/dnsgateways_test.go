package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
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
	want := []plan.DNSGateway{{
		Gateway: dns.Gateway{
			NamespacedName: types.NamespacedName{Namespace: "infra", Name: "g"}, Class: "cloudflare-tunnel", Tunnel: c.id, State: ownership.Accepted,
			Hostnames: []dns.Hostname{{Name: "a.example.com", Namespace: "infra", Created: now, Served: true, Permitted: true}},
		},
		Settings: settings.DNS{
			Mode: v1alpha1.DNSManage, Zones: []v1alpha1.DNSZone{{Name: "example.com"}}, DeletionDelay: 10 * time.Minute, MaxRecordsPerNamespace: 100,
		},
		AccountID: fake.AccountID, ClusterID: "c", Status: &v1alpha1.TunnelDNSStatus{Hostnames: map[string]int32{"Managed": 1}},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Gateways (-want +got):\n%s", diff)
	}
}

func TestDNSGatewaysOfPausedAndNewGateways(t *testing.T) {
	for name, test := range map[string]struct {
		manifests []string
		want      plan.DNSGateway
	}{
		"paused": {[]string{managing(gatewayFor("a.example.com", paused)), tunnelObject("tunnelID: x")}, plan.DNSGateway{Gateway: dns.Gateway{State: ownership.Frozen, Tunnel: "x"}, AccountID: fake.AccountID}},
		"new":    {[]string{managing(gatewayFor("a.example.com", ""))}, plan.DNSGateway{Gateway: dns.Gateway{State: ownership.Accepted}, AccountID: fake.AccountID}},
	} {
		t.Run(name, func(t *testing.T) {
			got := planOf(t, test.manifests...).DNSGateways()
			if len(got) != 1 || got[0].State != test.want.State || got[0].Tunnel != test.want.Tunnel || got[0].AccountID != test.want.AccountID || got[0].Status != nil {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
