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

// migration is the folder of the guide to the migration from cloudflared.
const migration = "migration-from-cloudflared/"

// paths are enough to tell the expressions of the guide apart.
var paths = []string{
	"/", "/api", "/api/", "/api/orders", "/apiary", "/v2/api", "/v2/api/orders", "/API",
	"/logo.png", "/api/logo.png", "/img/logo.PNG", "/logo.png/raw", "/app.js", "/logo.pngx",
	"/download", "/download/1", "/downloads", "/a/download/b", "/api/download", "/download/a.css",
	"/healthz", "/healthz/", "/healthzz", "/a/healthz", "/a b", "/äpi",
}

// answers are those that a document gives to requests: the rule's service and
// how its backend is talked to.
type answers struct {
	document document
	rules    *simulator.Rules
}

type document struct {
	Ingress []struct {
		OriginRequest map[string]any `json:"originRequest"`
	} `json:"ingress"`
	OriginRequest map[string]any `json:"originRequest"`
}

func answersOf(t *testing.T, text []byte) answers {
	t.Helper()
	var a answers
	if err := json.Unmarshal(text, &a.document); err != nil {
		t.Fatal(err)
	}
	var err error
	if a.rules, err = simulator.Compile(text); err != nil {
		t.Fatal(err)
	}
	return a
}

// answer returns the index of the rule, and what it does with the request.
func (a answers) answer(host, path string) (int, string) {
	index, service, _ := a.rules.Match(host, path)
	if strings.HasPrefix(service, "http_status:") {
		return index, service
	}
	origin := maps.Clone(a.document.OriginRequest)
	if origin == nil {
		origin = map[string]any{}
	}
	maps.Copy(origin, a.document.Ingress[index].OriginRequest)
	text, _ := json.Marshal(origin) // sorted
	return index, service + " " + string(text)
}

// planned returns the document that the manifests give.
func planned(t *testing.T, text string, paths ...string) []byte {
	t.Helper()
	made := planOf(t, text, paths...)
	if len(made.Gateways) != 1 || !made.Healthy() {
		t.Fatalf("the plan has %d Gateways, good: %t", len(made.Gateways), made.Healthy())
	}
	document, err := json.Marshal(made.Gateways[0].Config)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func planOf(t *testing.T, text string, paths ...string) *plan.Plan {
	t.Helper()
	files, err := state.FromFiles(paths, manifest.Options{Stdin: strings.NewReader(text)}, config.DefaultControllerName, config.DefaultClassName)
	if err != nil {
		t.Fatal(err)
	}
	made, err := plan.Build(t.Context(), files, plan.Options{Options: gateway.Options{
		ControllerName: config.DefaultControllerName, ControllerNamespace: config.DefaultControllerNamespace, ClusterDomain: config.DefaultClusterDomain,
	}}, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// remoteDocument returns what a configuration file of cloudflared says as the
// API holds it, where durations are whole seconds.
func remoteDocument() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(samples, migration, "before/config.yml"))
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

func inSeconds(originRequest map[string]any) {
	for name, value := range originRequest {
		if text, ok := value.(string); ok {
			if d, err := time.ParseDuration(text); err == nil {
				originRequest[name] = int(d.Seconds())
			}
		}
	}
}

func TestMigratedSamplesAnswerAsBefore(t *testing.T) {
	text, err := remoteDocument()
	if err != nil {
		t.Fatal(err)
	}
	before, after := answersOf(t, text), answersOf(t, planned(t, "", filepath.Join(samples, migration)))
	used := map[int]bool{}
	for _, host := range []string{
		"store.example.com", "staff.example.com", "one.preview.example.com", "one.two.preview.example.com",
		"preview.example.com", "store.example.com.test", "example.com", "",
	} {
		for _, path := range paths {
			rule, want := before.answer(host, path)
			used[rule] = true
			if _, got := after.answer(host, path); got != want {
				t.Errorf("%s%s: %s, before it was %s", host, path, got, want)
			}
		}
	}
	// What has no equivalent is not served: it stays with the old tunnel.
	for host, want := range map[string]string{"closed.example.com": "http_status:410", "ssh.example.com": "ssh://bastion.store.svc.cluster.local:22"} {
		rule, had := before.answer(host, "/")
		used[rule] = true
		if _, got := after.answer(host, "/"); !strings.HasPrefix(had, want) || got != "http_status:404" {
			t.Errorf("%s: %s, before it was %s", host, got, had)
		}
	}
	if len(used) != len(before.document.Ingress) {
		t.Errorf("the requests meet %d of %d rules", len(used), len(before.document.Ingress))
	}
}

// The guide shows the rules as plan prints them.
func TestGuideShowsThePlan(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guides/migration-from-cloudflared.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := planOf(t, "", filepath.Join(samples, migration)).WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	_, rules, ok := strings.Cut(table.String(), "  #  ")
	if !ok || !strings.Contains(string(guide), rules) {
		t.Errorf("the guide lacks\n%s", rules)
	}
}

// The settings for taking over are those of the guide and the tunnel.
func TestSettingsForTakingOverAreTheSame(t *testing.T) {
	var settings, takeover map[string]any
	for file, into := range map[string]*map[string]any{"10-settings.yaml": &settings, "takeover/settings.yaml": &takeover} {
		text, err := os.ReadFile(filepath.Join(samples, migration, file))
		if err == nil {
			err = yaml.UnmarshalStrict(text, into)
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

// The rows of the guide's table of paths, with the paths for which the two
// differ.
func TestPathsOfCloudflared(t *testing.T) {
	for _, test := range []struct {
		path, kind, value string
		differ            []string
	}{
		{"", "PathPrefix", "/", nil},
		{"^/api(/|$)", "PathPrefix", "/api", nil},
		{"^/healthz$", "Exact", "/healthz", nil},
		{"^/api", "RegularExpression", "/api.*", nil},
		{"^/api/", "RegularExpression", "/api/.*", nil},
		{"/api", "RegularExpression", ".*/api.*", nil},
		{`\.png$`, "RegularExpression", `.*\.png`, nil},
		{`(?i)\.png$`, "RegularExpression", `(?i).*\.png`, nil},
		{"^/api/", "PathPrefix", "/api", []string{"/api"}},
		{"^/api", "PathPrefix", "/api", []string{"/apiary"}},
		{"/api", "PathPrefix", "/api", []string{"/apiary", "/v2/api", "/v2/api/orders"}},
		{"/healthz", "Exact", "/healthz", []string{"/healthz/", "/healthzz", "/a/healthz"}},
	} {
		t.Run(test.path+" as "+test.kind+" "+test.value, func(t *testing.T) {
			old, _ := json.Marshal(test.path)
			before := rulesOf(`{"hostname":"a.example.com","path":` + string(old) + `,"service":"http://one.ns.svc.cluster.local:80"}`)
			after := objects(route("all", "", fmt.Sprintf("  - matches: [{path: {type: %s, value: '%s'}}]\n    backendRefs: [{name: one, port: 80}]\n", test.kind, test.value)))
			if diff := cmp.Diff(test.differ, differing(t, before, after, "a.example.com")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What the guide says of the order of rules.
func TestOrderOfCloudflared(t *testing.T) {
	rule := func(kind, value, service string) string {
		return fmt.Sprintf("  - matches: [{path: {type: %s, value: '%s'}}]\n    backendRefs: [{name: %s, port: 80}]\n", kind, value, service)
	}
	apiThenPNG := rulesOf(`{"hostname":"a.example.com","path":"^/api(/|$)","service":"http://one.ns.svc.cluster.local:80"},
		{"hostname":"a.example.com","path":"\\.png$","service":"http://two.ns.svc.cluster.local:80"}`)
	everyHost := rulesOf(`{"path":"^/healthz$","service":"http://one.ns.svc.cluster.local:80"},
		{"hostname":"a.example.com","service":"http://two.ns.svc.cluster.local:80"},
		{"hostname":"*.example.com","path":"^/api","service":"http://three.ns.svc.cluster.local:80"}`)
	wildcardFirst := rulesOf(`{"hostname":"*.example.com","path":"^/healthz$","service":"http://one.ns.svc.cluster.local:80"},
		{"hostname":"a.example.com","service":"http://two.ns.svc.cluster.local:80"}`)
	everything := "  - backendRefs: [{name: two, port: 80}]\n"
	tests := map[string]struct {
		before, after string
		differ        map[string][]string
	}{
		"a prefix comes after an expression": {
			apiThenPNG, objects(route("all", "exact", rule("PathPrefix", "/api", "one")+rule("RegularExpression", `.*\.png`, "two"))),
			map[string][]string{"a.example.com": {"/api/logo.png"}},
		},
		"expressions of one route keep their order": {
			apiThenPNG, objects(route("all", "exact", rule("RegularExpression", "/api(/.*)?", "one")+rule("RegularExpression", `.*\.png`, "two"))), nil,
		},
		"a route of all listeners": {
			everyHost, objects(route("health", "", rule("Exact", "/healthz", "one")) + route("a", "exact", everything) +
				route("rest", "wildcard", rule("RegularExpression", "/api.*", "three"))),
			map[string][]string{"other.test": {"/healthz"}},
		},
		"a wildcard never serves what has a listener of its own": {
			wildcardFirst, objects(route("health", "wildcard", rule("Exact", "/healthz", "one")) + route("a", "exact", everything)),
			map[string][]string{"a.example.com": {"/healthz"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, host := range []string{"a.example.com", "b.example.com", "other.test"} {
				if diff := cmp.Diff(test.differ[host], differing(t, test.before, test.after, host)); diff != "" {
					t.Errorf("%s: %s", host, diff)
				}
			}
		})
	}
}

// Two listeners of one hostname give two paths settings of their own.
func TestSettingsOfTwoPaths(t *testing.T) {
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
	after := objects(settings + route("api", "secure", "  - matches: [{path: {type: PathPrefix, value: /api}}]\n    backendRefs: [{name: one, port: 80}]\n") +
		route("rest", "exact", "  - backendRefs: [{name: two, port: 80}]\n"))
	after = strings.Replace(after, "  listeners:\n", `  infrastructure: {parametersRef: {group: tunnelgateway.dev, kind: TunnelConfiguration, name: s}}
  listeners:
  - {name: secure, hostname: a.example.com, port: 443, protocol: HTTPS}
`, 1)
	if diff := cmp.Diff([]string(nil), differing(t, before, after, "a.example.com")); diff != "" {
		t.Error(diff)
	}
}

// rulesOf returns a document of the rules.
func rulesOf(rules string) string { return `{"ingress":[` + rules + `,{"service":"http_status:404"}]}` }

// objects returns a Gateway with the listeners "exact" and "wildcard", and the
// routes.
func objects(routes string) string {
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

// route returns an HTTPRoute for one listener, or for all.
func route(name, section, rules string) string {
	parent := "{name: g}"
	if section != "" {
		parent = "{name: g, sectionName: " + section + "}"
	}
	return fmt.Sprintf("---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: %s, namespace: ns}\n"+
		"spec:\n  parentRefs: [%s]\n  rules:\n%s", name, parent, rules)
}

// differing returns the paths that the two answer differently, in their order.
func differing(t *testing.T, before, after, host string) []string {
	t.Helper()
	was, is := answersOf(t, []byte(before)), answersOf(t, planned(t, after, "-"))
	var found []string
	for _, path := range paths {
		_, then := was.answer(host, path)
		if _, now := is.answer(host, path); then != now {
			found = append(found, path)
		}
	}
	return found
}
