package plan_test

import (
	"os"
	"strings"
	"testing"
)

// envoyManifests returns testdata/envoy.yaml with replacements.
func envoyManifests(t *testing.T, oldnew ...string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/envoy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(oldnew...).Replace(string(text))
}

// With Envoy, a diff shows the routing table, because the tunnel's configuration does
// not contain the routes.
func TestDiffShowsEnvoyRoutes(t *testing.T) {
	unchanged, withIngressRules := envoyManifests(t), envoyManifests(t, "dataPlane: Envoy", "dataPlane: IngressRules")
	const (
		headers = "--- routes of Gateway infra/web in the cluster\n+++ routes of Gateway infra/web with the manifests\n"
		v1      = "http://v1.infra.svc.cluster.local:8080"
	)
	for name, test := range map[string]struct {
		before, after string
		want          []string
	}{
		"a weight": {unchanged, envoyManifests(t, "weight: 3", "weight: 4"),
			[]string{headers, "-shop.example.com PathPrefix /api -> " + v1 + " (weight 3), ", "+shop.example.com PathPrefix /api -> " + v1 + " (weight 4), "}},
		"a path": {unchanged, envoyManifests(t, "value: /old", "value: /older"),
			[]string{headers, "+shop.example.com PathPrefix /older -> redirect 301, scheme https, path replaced by \"/new\" [HTTPRoute infra/shop rule 3]\n"}},
		"a hostname that nothing serves": {unchanged, envoyManifests(t, "hostname: idle.example.com}", "hostname: new.example.com, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}"),
			[]string{headers, "+new.example.com every path -> status 404 [no route]\n"}},
		"the application of Access": {unchanged, envoyManifests(t, "audTags: [tag]", "audTags: [another]"),
			[]string{headers, "+admin.example.com every path -> " + v1 + "; Access of team example, AUD tag another [HTTPRoute infra/all rule 0]\n"}},
		"settings of requests": {unchanged, envoyManifests(t, "  dataPlane: Envoy", "  dataPlane: Envoy\n  originRequest: {connectTimeout: 3s}"),
			[]string{headers, "+originRequest {\"connectTimeout\":\"3s\"}\n"}},
		"settings of a listener": {unchanged, envoyManifests(t, "  listenerConfigurations:", "  listenerConfigurations:\n  - {protocolPort: \"HTTPS:443\", hostname: idle.example.com, originRequest: {connectTimeout: 3s}}"),
			[]string{headers, "+idle.example.com every path -> " + v1 + "; originRequest {\"connectTimeout\":\"3s\"} [HTTPRoute infra/all rule 0]\n"}},
		"a new Gateway": {envoyManifests(t, "name: web, namespace: infra", "name: old, namespace: infra"), unchanged,
			[]string{"--- no routes in the cluster\n+++ routes of Gateway infra/web with the manifests\n@@ -0,0 +1,17 @@\n+admin.example.com"}},
		"from ingress rules": {withIngressRules, unchanged, []string{headers, "+shop.example.com PathPrefix /api, header X-Version=2 -> "}},
		"to ingress rules":   {unchanged, withIngressRules, nil},
		"nothing":            {unchanged, unchanged, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.after)
			p.CompareTables(planOf(t, test.before))
			if p.HasChanges() != (test.want != nil) {
				t.Errorf("HasChanges = %t, want %t", p.HasChanges(), test.want != nil)
			}
			var out strings.Builder
			if err := p.WriteDiff(&out, false); err != nil {
				t.Fatal(err)
			}
			if test.want == nil && strings.Contains(out.String(), "routes") {
				t.Errorf("the output contains routes:\n%s", out.String())
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the output does not contain %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestDiffOfManifestsNotesThatItComparesNoRoutes(t *testing.T) {
	const note = "plan does not compare the routes"
	for name, test := range map[string]struct {
		manifests   string
		isCluster   bool
		isNotedDown bool
	}{
		"Envoy, manifests":         {envoyManifests(t), false, true},
		"Envoy, a cluster":         {envoyManifests(t), true, false},
		"ingress rules, manifests": {shared, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, test.manifests)
			p.NoteTablesNotCompared(test.isCluster)
			var out strings.Builder
			if err := p.WriteDiff(&out, false); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), note) != test.isNotedDown || p.HasChanges() {
				t.Errorf("HasChanges = %t, want false; the output contains %q: %t, want %t", p.HasChanges(), note, !test.isNotedDown, test.isNotedDown)
			}
		})
	}
}
