package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/config"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/manifest"
	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// migrationSamples is the directory with the samples for the guide to migrating from
// cloudflared.
const migrationSamples = "migration-from-cloudflared/"

// requestPaths distinguish the path expressions in the guide.
var requestPaths = []string{
	"/", "/api", "/api/", "/api/orders", "/apiary", "/v2/api", "/v2/api/orders", "/API",
	"/logo.png", "/api/logo.png", "/img/logo.PNG", "/logo.png/raw", "/app.js", "/logo.pngx",
	"/download", "/download/1", "/downloads", "/a/download/b", "/api/download", "/download/a.css",
	"/healthz", "/healthz/", "/healthzz", "/a/healthz", "/a b", "/äpi",
}

// evaluator finds the ingress rule for a request in a configuration.
type evaluator struct {
	configuration ingressConfiguration
	rules         *simulator.Rules
}

// ingressConfiguration contains the origin settings in a tunnel configuration.
type ingressConfiguration struct {
	Ingress []struct {
		OriginRequest map[string]any `json:"originRequest"`
	} `json:"ingress"`
	OriginRequest map[string]any `json:"originRequest"`
}

func newEvaluator(t *testing.T, text []byte) evaluator {
	t.Helper()
	var e evaluator
	if err := json.Unmarshal(text, &e.configuration); err != nil {
		t.Fatal(err)
	}
	var err error
	if e.rules, err = simulator.Compile(text); err != nil {
		t.Fatal(err)
	}
	return e
}

// evaluate returns the index of the rule for a request, and its service and origin
// settings.
func (e evaluator) evaluate(host, path string) (int, string) {
	index, service, _ := e.rules.Match(host, path)
	if strings.HasPrefix(service, "http_status:") {
		return index, service
	}
	origin := maps.Clone(e.configuration.OriginRequest)
	if origin == nil {
		origin = map[string]any{}
	}
	maps.Copy(origin, e.configuration.Ingress[index].OriginRequest)
	text, _ := json.Marshal(origin) // with sorted keys
	return index, service + " " + string(text)
}

// plannedConfiguration returns the configuration that plan computes from manifests.
func plannedConfiguration(t *testing.T, text string, paths ...string) []byte {
	t.Helper()
	result := planManifests(t, text, paths...)
	if len(result.Gateways) != 1 || !result.Healthy() {
		t.Fatalf("the plan has %d Gateways, good: %t", len(result.Gateways), result.Healthy())
	}
	configuration, err := json.Marshal(result.Gateways[0].Config)
	if err != nil {
		t.Fatal(err)
	}
	return configuration
}

func planManifests(t *testing.T, text string, paths ...string) *plan.Plan {
	t.Helper()
	files, err := state.FromFiles(paths, manifest.Options{Stdin: strings.NewReader(text)}, config.DefaultControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	result, err := plan.Build(t.Context(), files, plan.Options{Options: gateway.Options{
		ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
	}}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// remoteConfiguration returns cloudflared's configuration file in the Cloudflare API
// format, in which durations are whole seconds.
func remoteConfiguration() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(samplesDir, migrationSamples, "before/config.yml"))
	if err != nil {
		return nil, err
	}
	var file struct {
		Ingress []struct {
			Hostname      string         `json:"hostname,omitempty"`
			Path          string         `json:"path,omitempty"`
			Service       string         `json:"service"`
			OriginRequest map[string]any `json:"originRequest,omitempty"`
		} `json:"ingress"`
		OriginRequest map[string]any `json:"originRequest,omitempty"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	inSeconds(file.OriginRequest)
	for _, rule := range file.Ingress {
		inSeconds(rule.OriginRequest)
	}
	return json.Marshal(file)
}

// inSeconds replaces each duration by its number of seconds.
func inSeconds(originRequest map[string]any) {
	for name, value := range originRequest {
		if text, ok := value.(string); ok {
			if d, err := time.ParseDuration(text); err == nil {
				originRequest[name] = int(d.Seconds())
			}
		}
	}
}

func TestMigratedSamplesServeTheSameBackends(t *testing.T) {
	// The migrated samples serve each request like the cloudflared configuration.
	text, err := remoteConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	before, after := newEvaluator(t, text), newEvaluator(t, plannedConfiguration(t, "", filepath.Join(samplesDir, migrationSamples)))
	used := map[int]bool{}
	for _, host := range []string{
		"store.example.com", "staff.example.com", "one.preview.example.com", "one.two.preview.example.com",
		"preview.example.com", "store.example.com.test", "example.com", "",
	} {
		for _, path := range requestPaths {
			rule, want := before.evaluate(host, path)
			used[rule] = true
			if _, got := after.evaluate(host, path); got != want {
				t.Errorf("%s%s: %s, want %s", host, path, got, want)
			}
		}
	}
	// Services without an equivalent are not served. They stay on the old tunnel.
	for host, want := range map[string]string{"closed.example.com": "http_status:410", "ssh.example.com": "ssh://bastion.store.svc.cluster.local:22"} {
		rule, found := before.evaluate(host, "/")
		used[rule] = true
		if _, got := after.evaluate(host, "/"); !strings.HasPrefix(found, want) || got != "http_status:404" {
			t.Errorf("%s: %s after the migration of %s, want http_status:404", host, got, found)
		}
	}
	if len(used) != len(before.configuration.Ingress) {
		t.Errorf("the requests match %d of %d rules", len(used), len(before.configuration.Ingress))
	}
}

func TestGuideShowsThePlan(t *testing.T) {
	// The guide shows the rules as plan prints them.
	guide, err := os.ReadFile("../../docs/guides/migration-from-cloudflared.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := planManifests(t, "", filepath.Join(samplesDir, migrationSamples)).WriteTable(&table, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	_, rules, ok := strings.Cut(table.String(), "  #  ")
	if !ok || !strings.Contains(string(guide), rules) {
		t.Errorf("the guide does not contain\n%s", rules)
	}
}

func TestTakeoverSettingsOnlyAddTheTunnel(t *testing.T) {
	// The settings for a takeover are the guide's settings plus the tunnel.
	var settings, takeover map[string]any
	for file, target := range map[string]*map[string]any{"10-settings.yaml": &settings, "takeover/settings.yaml": &takeover} {
		text, err := os.ReadFile(filepath.Join(samplesDir, migrationSamples, file))
		if err == nil {
			err = yaml.UnmarshalStrict(text, target)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	settings["spec"].(map[string]any)["tunnel"] = map[string]any{"existing": map[string]any{"id": "0f3c1e5a-7b42-4c7e-9a53-6d1b2e8f4a90"}}
	if diff := cmp.Diff(settings, takeover); diff != "" {
		t.Error(diff)
	}
}

func TestPathMatchesReplaceCloudflaredExpressions(t *testing.T) {
	// Each test case is a row in the guide's table of paths, with the request paths that
	// the Gateway API match serves differently.
	for _, test := range []struct {
		path, kind, value string
		differ            []string
	}{
		{"", "PathPrefix", "/", nil},
		{"^/api(/|$)", "PathPrefix", "/api", nil},
		{"^/healthz$", "Exact", "/healthz", nil},
		{"^/api", "RegularExpression", "(?s)/api.*", nil},
		{"^/api/", "RegularExpression", "(?s)/api/.*", nil},
		{"/api", "RegularExpression", "(?s).*/api.*", nil},
		{`\.png$`, "RegularExpression", `(?s).*\.png`, nil},
		{`(?i)\.png$`, "RegularExpression", `(?s).*(?i)\.png`, nil},
		{"^/api/", "PathPrefix", "/api", []string{"/api"}},
		{"^/api", "PathPrefix", "/api", []string{"/apiary"}},
		{"/api", "PathPrefix", "/api", []string{"/apiary", "/v2/api", "/v2/api/orders"}},
		{"/healthz", "Exact", "/healthz", []string{"/healthz/", "/healthzz", "/a/healthz"}},
	} {
		t.Run(test.path+" as "+test.kind+" "+test.value, func(t *testing.T) {
			old, _ := json.Marshal(test.path)
			before := ingressOf(`{"hostname":"a.example.com","path":` + string(old) + `,"service":"http://one.ns.svc.cluster.local:80"}`)
			after := gatewayManifests(routeManifest("all", "", fmt.Sprintf("  - matches: [{path: {type: %s, value: '%s'}}]\n    backendRefs: [{name: one, port: 80}]\n", test.kind, test.value)))
			if diff := cmp.Diff(test.differ, differingPaths(t, before, after, "a.example.com")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRulesAreOrderedAsTheGuideDescribes(t *testing.T) {
	// The rules have the order that the guide describes.
	rule := func(kind, value, service string) string {
		return fmt.Sprintf("  - matches: [{path: {type: %s, value: '%s'}}]\n    backendRefs: [{name: %s, port: 80}]\n", kind, value, service)
	}
	apiThenPNG := ingressOf(`{"hostname":"a.example.com","path":"^/api(/|$)","service":"http://one.ns.svc.cluster.local:80"},
		{"hostname":"a.example.com","path":"\\.png$","service":"http://two.ns.svc.cluster.local:80"}`)
	everyHost := ingressOf(`{"path":"^/healthz$","service":"http://one.ns.svc.cluster.local:80"},
		{"hostname":"a.example.com","service":"http://two.ns.svc.cluster.local:80"},
		{"hostname":"*.example.com","path":"^/api","service":"http://three.ns.svc.cluster.local:80"}`)
	wildcardFirst := ingressOf(`{"hostname":"*.example.com","path":"^/healthz$","service":"http://one.ns.svc.cluster.local:80"},
		{"hostname":"a.example.com","service":"http://two.ns.svc.cluster.local:80"}`)
	everything := "  - backendRefs: [{name: two, port: 80}]\n"
	tests := map[string]struct {
		before, after string
		differ        map[string][]string
	}{
		"a prefix match comes after a regular expression": {
			apiThenPNG, gatewayManifests(routeManifest("all", "exact", rule("PathPrefix", "/api", "one")+rule("RegularExpression", `.*\.png`, "two"))),
			map[string][]string{"a.example.com": {"/api/logo.png"}},
		},
		"regular expressions of one route keep their order": {
			apiThenPNG, gatewayManifests(routeManifest("all", "exact", rule("RegularExpression", "/api(/.*)?", "one")+rule("RegularExpression", `.*\.png`, "two"))), nil,
		},
		"a route attached to all listeners": {
			everyHost, gatewayManifests(routeManifest("health", "", rule("Exact", "/healthz", "one")) + routeManifest("a", "exact", everything) +
				routeManifest("rest", "wildcard", rule("RegularExpression", "/api.*", "three"))),
			map[string][]string{"other.test": {"/healthz"}},
		},
		"a wildcard listener does not serve another listener's hostname": {
			wildcardFirst, gatewayManifests(routeManifest("health", "wildcard", rule("Exact", "/healthz", "one")) + routeManifest("a", "exact", everything)),
			map[string][]string{"a.example.com": {"/healthz"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, host := range []string{"a.example.com", "b.example.com", "other.test"} {
				if diff := cmp.Diff(test.differ[host], differingPaths(t, test.before, test.after, host)); diff != "" {
					t.Errorf("%s: %s", host, diff)
				}
			}
		})
	}
}

func TestTwoListenersSeparateTheSettingsOfTwoPaths(t *testing.T) {
	// Two listeners with the same hostname give two paths separate settings.
	before := `{"ingress":[
		{"hostname":"a.example.com","path":"^/api(/|$)","service":"http://one.ns.svc.cluster.local:80","originRequest":{"connectTimeout":3}},
		{"hostname":"a.example.com","service":"http://two.ns.svc.cluster.local:80","originRequest":{"connectTimeout":9}},
		{"service":"http_status:404"}]}`
	settings := `---
apiVersion: tunnelgateway.dev/v1alpha1
kind: TunnelConfiguration
metadata: {name: s, namespace: ns}
spec:
  listenerConfigurations:
  - {protocolPort: "HTTPS:443", hostname: a.example.com, originRequest: {connectTimeout: 3s}}
  - {protocolPort: "HTTP:80", hostname: a.example.com, originRequest: {connectTimeout: 9s}}
`
	after := gatewayManifests(settings + routeManifest("api", "secure", "  - matches: [{path: {type: PathPrefix, value: /api}}]\n    backendRefs: [{name: one, port: 80}]\n") +
		routeManifest("rest", "exact", "  - backendRefs: [{name: two, port: 80}]\n"))
	after = strings.Replace(after, "  listeners:\n", `  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: s}}
  listeners:
  - {name: secure, hostname: a.example.com, port: 443, protocol: HTTPS}
`, 1)
	if diff := cmp.Diff([]string(nil), differingPaths(t, before, after, "a.example.com")); diff != "" {
		t.Error(diff)
	}
}

// ingressOf returns a configuration with the rules and a final 404 rule.
func ingressOf(rules string) string {
	return `{"ingress":[` + rules + `,{"service":"http_status:404"}]}`
}

// gatewayManifests returns manifests: a Gateway with the listeners "exact" and
// "wildcard", Services, and the routes.
func gatewayManifests(routes string) string {
	var services strings.Builder
	for _, name := range []string{"one", "two", "three"} {
		fmt.Fprintf(&services, "---\napiVersion: v1\nkind: Service\nmetadata: {name: %s, namespace: ns}\nspec: {ports: [{port: 80}]}\n", name)
	}
	return `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: g, namespace: ns}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners:
  - {name: exact, hostname: a.example.com, port: 80, protocol: HTTP}
  - {name: wildcard, hostname: "*.example.com", port: 80, protocol: HTTP}
` + services.String() + routes
}

// routeManifest returns an HTTPRoute for one listener, or for all if section is
// empty.
func routeManifest(name, section, rules string) string {
	parent := "{name: g}"
	if section != "" {
		parent = "{name: g, sectionName: " + section + "}"
	}
	return fmt.Sprintf("---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: %s, namespace: ns}\n"+
		"spec:\n  parentRefs: [%s]\n  rules:\n%s", name, parent, rules)
}

// differingPaths returns the paths that the two configurations serve differently.
func differingPaths(t *testing.T, before, after, host string) []string {
	t.Helper()
	old, migrated := newEvaluator(t, []byte(before)), newEvaluator(t, plannedConfiguration(t, after, "-"))
	var found []string
	for _, path := range requestPaths {
		_, want := old.evaluate(host, path)
		if _, got := migrated.evaluate(host, path); got != want {
			found = append(found, path)
		}
	}
	return found
}
