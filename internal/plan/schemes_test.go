package plan_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// The table and the explanations show the scheme where it decides which entry answers.
func TestSchemesMatchTheGoldenFile(t *testing.T) {
	manifests, err := os.ReadFile("testdata/schemes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	withRules := strings.ReplaceAll(string(manifests), "dataPlane: Envoy", "dataPlane: IngressRules")
	var got bytes.Buffer
	for _, c := range []struct {
		plan *plan.Plan
		urls []string
	}{
		{planOf(t, string(manifests)), []string{
			"http://shop.example.com/", "https://shop.example.com/", "shop.example.com/", "http://shop.example.com/health",
			"http://x.example.com/", "https://x.example.com/", "https://plain.example.com/", "https://example.net/",
		}},
		{planOf(t, withRules), []string{"http://shop.example.com/", "https://plain.example.com/"}},
	} {
		if err := c.plan.WriteTable(&got, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		for _, url := range c.urls {
			got.WriteString("\n# " + url + "\n")
			if err := explain(t, c.plan, url).WriteTable(&got, plan.Style{}); err != nil {
				t.Fatal(err)
			}
		}
		got.WriteString("\n")
	}
	compareGolden(t, "testdata/schemes.txt", got.String())
}

// The plan's JSON and the Envoy resources have the scheme too.
func TestOutputsHaveTheScheme(t *testing.T) {
	source := read(t, "", "testdata/schemes.yaml")
	p := buildPlan(t, source, now)
	schemes := map[any]bool{}
	for _, entry := range decoded(t, p)["gateways"].([]any)[0].(map[string]any)["entries"].([]any) {
		schemes[entry.(map[string]any)["scheme"]] = true
	}
	for _, scheme := range []any{"http", "https", nil} {
		if !schemes[scheme] {
			t.Errorf("no entry of the JSON has the scheme %v", scheme)
		}
	}
	if err := p.RenderEnvoy(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	var static, routes bytes.Buffer
	if err := p.WriteEnvoy(&static); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteEnvoyRoutes(&routes); err != nil {
		t.Fatal(err)
	}
	for _, output := range []string{static.String(), routes.String()} {
		if !strings.Contains(output, `"name": "x-forwarded-proto"`) {
			t.Errorf("the output has no condition for the scheme:\n%s", output)
		}
	}
}
