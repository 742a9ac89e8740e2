package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// formsOf returns forms of a host that DNS does not distinguish.
func formsOf(host string) []string {
	first, rest, _ := strings.Cut(host, ".")
	return []string{
		host, strings.ToUpper(host), strings.ToUpper(first) + "." + rest, first + "." + strings.ToUpper(rest), host + ".", strings.ToUpper(first) + "." + rest + ".",
	}
}

func explain(t *testing.T, p *plan.Plan, url string) *plan.Explanation {
	t.Helper()
	request, err := routing.ParseRequest(url)
	if err != nil {
		t.Fatal(err)
	}
	return p.Explain(request)
}

// answered returns the service in the ingress rule that answers on a Gateway.
func answered(e *plan.Explanation, gateway string) string {
	for _, trace := range e.Traces {
		switch {
		case trace.Name != gateway || trace.Answer == nil:
		case len(trace.Answer.Backends) > 0:
			return trace.Answer.Backends[0].Backend
		default:
			return fmt.Sprintf("http_status:%d", trace.Answer.Status)
		}
	}
	return "http_status:404"
}

// cloudflared compares hosts with regard to letter case and with the dot at their end.
func TestExplanationsFollowTheConnectorForEachHostForm(t *testing.T) {
	p := buildPlan(t, read(t, "", "testdata/why.yaml"), now)
	for i := range p.Gateways {
		g := &p.Gateways[i]
		if g.Config == nil {
			continue
		}
		encoded, err := json.Marshal(g.Config)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := simulator.Compile(encoded)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"shop.example.com", "a.example.com", "x.example.com", "single.shops.example.net", "tls.example.com", "unknown.example.org"} {
			for _, host := range formsOf(name) {
				for _, path := range []string{"/", "/cart", "/named", "/cart/1"} {
					_, want, _ := rules.Match(host, path)
					if got := answered(explain(t, p, "https://"+host+path), g.Name); got != want {
						t.Errorf("Gateway %s, %s%s: --why answers with %s, the connector with %s", g.Name, host, path, got, want)
					}
				}
			}
		}
	}
}

// Envoy compares hosts as DNS does. The connector does not, so it sends other forms of
// a protected hostname to a listener that refuses them.
func TestExplanationsFollowEnvoyForEachHostForm(t *testing.T) {
	const backend = "http://web.infra.svc.cluster.local:80"
	listeners := `{name: admin, port: 443, protocol: HTTPS, hostname: admin.example.com}, ` + wildcard
	admin := `dataPlane: Envoy, listenerConfigurations: [{protocolPort: "*", hostname: admin.example.com, ` + required + `}`
	open := planOf(t, withClusterIP(accessCluster(listeners, admin+`]`, "")))
	protected := planOf(t, withClusterIP(accessCluster(listeners,
		admin+`, {protocolPort: "*", hostname: "*.example.com", access: {required: true, teamName: example, audTags: [another]}}, {protocolPort: "*", hostname: public.example.com, `+exempt+`}]`, "")))
	for _, c := range []struct {
		plan    *plan.Plan
		answers map[string]string // by host
	}{
		{open, map[string]string{
			"admin.example.com": backend, "ADMIN.example.com": "http_status:404", "admin.example.com.": "http_status:404", "admin.EXAMPLE.com": "http_status:404",
			"shop.example.com": backend, "SHOP.example.com": backend, "shop.EXAMPLE.com.": backend,
		}},
		{protected, map[string]string{
			"admin.example.com": backend, "ADMIN.example.com": "http_status:403", "admin.example.com.": "http_status:404",
			"public.example.com": backend, "PUBLIC.example.com": "http_status:403", "public.example.com.": backend,
			"shop.example.com": backend, "SHOP.example.com": "http_status:403", "shop.EXAMPLE.com": "http_status:404",
		}},
	} {
		for host, want := range c.answers {
			if got := answered(explain(t, c.plan, host), "web"); got != want {
				t.Errorf("%s: --why answers with %s, Envoy with %s", host, got, want)
			}
		}
	}
}

// withClusterIP gives Services in manifests an address, which Envoy needs.
func withClusterIP(manifests string) string {
	return strings.ReplaceAll(manifests, "spec: {ports:", "spec: {clusterIP: 10.0.0.1, ports:")
}
