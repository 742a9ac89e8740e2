package adoption

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	tunnelID  = provider.TunnelID("6ff42ae2-765d-4adf-8112-31c55c1551ef")
	clusterID = "prod"
	account   = "account"
)

// gateway returns a Gateway in the namespace infra that uses the hostnames.
func gateway(name string, hostnames ...string) Gateway {
	g := Gateway{AccountID: account, ClusterID: clusterID, Settings: settings.DNS{
		Mode: v1alpha1.DNSManage, Zones: []v1alpha1.DNSZone{{Name: "example.com"}, {Name: "b.example.com", ID: "b"}},
	}}
	g.Gateway = dns.Gateway{NamespacedName: types.NamespacedName{Namespace: "infra", Name: name}, Class: "tunnel", State: ownership.Accepted, Tunnel: tunnelID}
	for _, h := range hostnames {
		g.Hostnames = append(g.Hostnames, dns.Hostname{Name: h, Namespace: "team", Served: true})
	}
	return g
}

func TestSelectFindsTheGatewayAndTheZone(t *testing.T) {
	all := []Gateway{gateway("one", "a.example.com", "x.b.example.com"), gateway("two", "*.example.com", "example.com")}
	got, err := Select(all, []string{"X.b.example.com.", "*.example.com", "a.example.com", "a.example.com", "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, w := range got {
		rows = append(rows, strings.Join([]string{w.Name, w.Zone.Name, w.Zone.ID, w.Gateway.Name}, " "))
	}
	want := "x.b.example.com b.example.com b one, *.example.com example.com  two, a.example.com example.com  one, example.com example.com  two"
	if text := strings.Join(rows, ", "); text != want {
		t.Errorf("selected %s, want %s", text, want)
	}
}

func TestSelectExplainsWhyANameCannotBeAdopted(t *testing.T) {
	with := func(change func(*Gateway)) []Gateway {
		g := gateway("one", "a.example.com")
		change(&g)
		return []Gateway{g}
	}
	for name, test := range map[string]struct {
		gateways []Gateway
		want     string
	}{
		"no Gateway":       {nil, "no Gateway uses this controller; set --controller-name if it has another name"},
		"Off":              {with(func(g *Gateway) { g.Settings.Mode = v1alpha1.DNSOff }), "a.example.com: Gateway infra/one: dns.mode of GatewayClass tunnel is Off; set it to Manage"},
		"invalid settings": {with(func(g *Gateway) { g.Settings = settings.DNS{} }), "a.example.com: Gateway infra/one: dns.mode of GatewayClass tunnel is Off; set it to Manage"},
		"Observe":          {with(func(g *Gateway) { g.Settings.Mode = v1alpha1.DNSObserve }), "a.example.com: Gateway infra/one: dns.mode of GatewayClass tunnel is Observe, which changes no record; set it to Manage"},
		"paused":           {with(func(g *Gateway) { g.State = ownership.Frozen }), "a.example.com: Gateway infra/one: it is paused, or its Tunnel is Blocked, so the controller changes no record for it"},
		"not accepted":     {with(func(g *Gateway) { g.State = ownership.Rejected }), "a.example.com: Gateway infra/one: it is not accepted, so the controller changes no record for it; see its conditions"},
		"no tunnel":        {with(func(g *Gateway) { g.Tunnel = "" }), "a.example.com: Gateway infra/one: it has no tunnel yet; see its Programmed condition"},
		"no zone":          {with(func(g *Gateway) { g.Settings.Zones = g.Settings.Zones[1:] }), "a.example.com: Gateway infra/one: the hostname is in none of the zones in dns.zones of GatewayClass tunnel lists"},
		"excluded":         {with(func(g *Gateway) { g.Settings.Exclude = []string{"*.example.com"} }), "a.example.com: Gateway infra/one: dns.exclude of GatewayClass tunnel excludes the hostname"},
		"not permitted": {with(func(g *Gateway) { g.Settings.RequiresPermission = true }),
			"a.example.com: Gateway infra/one: the annotation tunnelgateway.dev/hostnames of namespace team does not permit the hostname"},
		"several Gateways":         {[]Gateway{gateway("one", "a.example.com"), gateway("two", "a.example.com")}, "a.example.com: several Gateways use the hostname: infra/one, infra/two; select one with --gateway"},
		"another name":             {[]Gateway{gateway("one", "aa.example.com")}, "a.example.com: Gateway infra/one does not use the hostname in a listener and a route; did you mean aa.example.com?"},
		"another name of several":  {[]Gateway{gateway("one"), gateway("two")}, "a.example.com: no Gateway uses the hostname in a listener and a route"},
		"only through a wildcard":  {[]Gateway{gateway("one", "*.example.com")}, "a.example.com: Gateway infra/one does not use the hostname by name, only through the wildcard *.example.com, so no record of its own is managed for it"},
		"a wildcard further below": {[]Gateway{gateway("one", "*.a.example.com")}, "a.example.com: Gateway infra/one does not use the hostname in a listener and a route; did you mean *.a.example.com?"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Select(test.gateways, []string{"a.example.com"}); err == nil || err.Error() != test.want {
				t.Errorf("error = %v, want %s", err, test.want)
			}
		})
	}
}

func TestSelectNamesEveryProblem(t *testing.T) {
	_, err := Select([]Gateway{gateway("one", "a.example.com")}, []string{"q.example.org", "a.example.com", "r.example.org"})
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "q.example.org: ") || !strings.Contains(err.Error(), "r.example.org: ") {
		t.Errorf("error = %v, want one line for each name that is not used", err)
	}
}

func TestSelectAllOmitsWhatCannotBeAdopted(t *testing.T) {
	observed := gateway("observed", "o.example.com")
	observed.Settings.Mode = v1alpha1.DNSObserve
	one := gateway("one", "c.example.com", "a.example.com", "x.example.org", "old.example.com")
	one.Settings.Exclude = []string{"old.example.com"}
	got, err := SelectAll([]Gateway{observed, one, gateway("two", "a.example.com", "b.example.com")})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range got {
		names = append(names, w.Name+" "+w.Gateway.Name)
	}
	if text := strings.Join(names, ", "); text != "a.example.com one, a.example.com two, b.example.com two, c.example.com one" {
		t.Errorf("selected %s", text)
	}

	if _, err = SelectAll([]Gateway{observed}); err == nil || !strings.Contains(err.Error(), "Gateway infra/observed: dns.mode of GatewayClass tunnel is Observe") {
		t.Errorf("error = %v, want one that names the mode", err)
	}
	if _, err = SelectAll([]Gateway{gateway("one", "x.example.org")}); err == nil || !strings.Contains(err.Error(), "no Gateway uses a hostname in a zone") {
		t.Errorf("error = %v, want one about the zones", err)
	}
}
