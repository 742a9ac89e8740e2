package plan_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// The table shows the complete entries, and an explanation follows a request as Envoy does.
func TestTableAndExplanationsWithEnvoyMatchTheGoldenFile(t *testing.T) {
	source := read(t, "", "testdata/envoy.yaml")
	p := buildPlan(t, source, now)
	var got bytes.Buffer
	if err := p.WriteTable(&got, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"shop.example.com/api/x", "shop.example.com//api/./x%2Fy", "shop.example.com/old?a=1", "shop.example.com/a%00b", "admin.example.com", "ADMIN.example.com", "SHOP.example.com./old", "shop.example.com/named",
	} {
		request, err := routing.ParseRequest(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.ReadEndpoints(t.Context(), source, request); err != nil {
			t.Fatal(err)
		}
		got.WriteString("\n# " + text + "\n")
		if err := p.Explain(request).WriteTable(&got, plan.Style{}); err != nil {
			t.Fatal(err)
		}
	}
	compareGolden(t, "testdata/envoy.txt", got.String())
}

func TestJSONContainsTheDataPlaneAndItsEntries(t *testing.T) {
	p := buildPlan(t, read(t, "", "testdata/envoy.yaml"), now)
	g := decoded(t, p)["gateways"].([]any)[0].(map[string]any)
	first := g["entries"].([]any)[0].(map[string]any)
	want := map[string]any{
		"hostname": "admin.example.com", "match": "PathPrefix /headless", "action": "http://pods.infra.svc.cluster.local:80",
		"backends": []any{map[string]any{"backend": "http://pods.infra.svc.cluster.local:80", "weight": 1.0}},
		"route":    map[string]any{"kind": "HTTPRoute", "namespace": "infra", "name": "all"}, "rule": 2.0, "matchIndex": 0.0,
		"access": map[string]any{"required": true, "teamName": "example", "audTag": []any{"tag"}},
	}
	if diff := cmp.Diff(want, first); g["dataPlane"] != "Envoy" || diff != "" {
		t.Errorf("data plane %v; the first entry differs (-want +got):\n%s", g["dataPlane"], diff)
	}
	rules := g["config"].(map[string]any)["ingress"].([]any)
	if len(rules) != 2 {
		t.Errorf("the tunnel has the rules %v, want one for admin.example.com and one for every hostname", rules)
	}
}

func TestEnvoyRunsWithoutAController(t *testing.T) {
	p := renderEnvoy(t, envoyManifests(t))
	var out, warnings, indented bytes.Buffer
	var bootstrap map[string]any
	decodeOutput(t, &out, p.WriteEnvoy, &bootstrap)
	if err := json.Indent(&indented, bytes.TrimSpace(out.Bytes()), "", "  "); err != nil || indented.String()+"\n" != out.String() {
		t.Errorf("the output is not JSON with stable spaces (%v)", err)
	}
	for _, field := range []string{"admin", "dynamicResources", "node"} {
		if bootstrap[field] != nil {
			t.Errorf("the configuration contains %s", field)
		}
	}
	var ports []any
	for _, l := range bootstrap["staticResources"].(map[string]any)["listeners"].([]any) {
		ports = append(ports, l.(map[string]any)["address"].(map[string]any)["socketAddress"].(map[string]any)["portValue"])
	}
	if diff := cmp.Diff([]any{10080.0, 10081.0}, ports); diff != "" {
		t.Errorf("the ports of the listeners differ (-want +got):\n%s", diff)
	}
	for _, address := range []string{`"192.0.2.21"`, `"192.0.2.13"`, `"named.infra.svc.cluster.local"`} {
		if !strings.Contains(out.String(), address) {
			t.Errorf("the configuration does not contain the address %s", address)
		}
	}
	p.WriteEnvoyWarnings(&warnings, plan.Style{})
	if want := "warning: no clusterIP in the manifests of these Services, so Envoy looks up their DNS names: infra/named\n" +
		"warning: no endpoints in the EndpointSlices of these Services, so Envoy returns 503 for requests to them: infra/v2\n"; warnings.String() != want {
		t.Errorf("warnings %q, want %q", warnings.String(), want)
	}
}

// renderEnvoy returns the plan for manifests with its Envoy configuration.
func renderEnvoy(t *testing.T, manifests string) *plan.Plan {
	t.Helper()
	source := read(t, manifests, "-")
	p := buildPlan(t, source, now)
	if err := p.RenderEnvoy(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	return p
}

// decodeOutput decodes what write prints, and keeps it in out.
func decodeOutput(t *testing.T, out *bytes.Buffer, write func(io.Writer) error, into any) {
	t.Helper()
	err := write(out)
	if err == nil {
		err = json.Unmarshal(out.Bytes(), into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// resourceVersions returns the resource versions for manifests, by kind and name.
func resourceVersions(t *testing.T, manifests string) map[string]string {
	t.Helper()
	var out bytes.Buffer
	var lists map[string][]struct {
		Name, Version, TypeURL string
		Resource               map[string]any
	}
	decodeOutput(t, &out, renderEnvoy(t, manifests).WriteEnvoyRoutes, &lists)
	versions := map[string]string{}
	for kind, list := range lists {
		for _, r := range list {
			if !strings.HasPrefix(r.TypeURL, "type.googleapis.com/envoy.config.") || len(r.Resource) == 0 {
				t.Errorf("%s %s has the type %q and the content %v", kind, r.Name, r.TypeURL, r.Resource)
			}
			versions[kind+" "+r.Name] = r.Version
		}
	}
	return versions
}

func TestVersionsOfEnvoyRoutesDependOnTheContent(t *testing.T) {
	before, after := resourceVersions(t, envoyManifests(t)), resourceVersions(t, envoyManifests(t, "192.0.2.13", "192.0.2.14"))
	var changed []string
	for name := range before {
		if before[name] != after[name] {
			changed = append(changed, name[:strings.LastIndex(name, ".")])
		}
	}
	if diff := cmp.Diff([]string{"endpoints s.infra.pods.80"}, changed); diff != "" {
		t.Errorf("after a change of an endpoint, the resources with another version differ (-want +got):\n%s", diff)
	}
	if before["routes open"] == "" || before["routes protected"] == "" {
		t.Errorf("no routes: %v", before)
	}
}

func TestEnvoyRequiresOneGatewayWithThatDataPlane(t *testing.T) {
	withIngressRules := envoyManifests(t, "dataPlane: Envoy", "dataPlane: IngressRules")
	const other = `
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: other, namespace: infra}, spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: a, port: 80, protocol: HTTP}]}}
`
	for name, test := range map[string]struct{ manifests, want string }{
		"ingress rules":    {withIngressRules, "Gateway infra/web has the data plane IngressRules; set spec.dataPlane to Envoy in TunnelConfiguration platform/defaults of GatewayClass cloudflare-tunnel"},
		"no configuration": {shared, "Gateway infra/shared has the data plane IngressRules; set the annotation tunnelgateway.dev/data-plane of GatewayClass cloudflare-tunnel to Envoy"},
		"not accepted":     {rejected, `Gateway infra/rejected is not accepted, so it has no Envoy configuration: UnsupportedAddress: spec.addresses[0] requests "192.0.2.1", but Cloudflare assigns the address of a tunnel. Remove the value`},
		"several":          {envoyManifests(t) + "\n---" + other, "an Envoy configuration belongs to one Gateway; select it with --gateway: infra/other, infra/web"},
		"none":             {teams, "No Gateway uses this controller"},
	} {
		t.Run(name, func(t *testing.T) {
			source := read(t, test.manifests, "-")
			if err := buildPlan(t, source, now).RenderEnvoy(t.Context(), source); err == nil || err.Error() != test.want {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}
