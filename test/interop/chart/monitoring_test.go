package chart

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	alertsFile    = "alerts.yaml"
	dashboardFile = "dashboard.json"
)

// chartFile reads one of the chart's files that is not a template.
func chartFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(chartDir + "/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAlertsAndDashboardAreRenderedVerbatim checks that Helm does not change the alerts
// and the dashboard. They contain template expressions for Prometheus and Grafana, which
// Helm must not evaluate.
func TestAlertsAndDashboardAreRenderedVerbatim(t *testing.T) {
	var rule, dashboard object
	for _, o := range objects(t, render(t, "--values", "testdata/everything.values.yaml")) {
		switch o["kind"] {
		case "PrometheusRule":
			rule = o
		case "ConfigMap":
			dashboard = o
		}
	}
	var groups map[string]any
	if err := yaml.Unmarshal(chartFile(t, alertsFile), &groups); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(groups, childMap(rule, "spec")); diff != "" {
		t.Errorf("the PrometheusRule differs from %s (-file +rule):\n%s", alertsFile, diff)
	}
	want := map[string]any{"tunnel-gateway.json": string(chartFile(t, dashboardFile))}
	if diff := cmp.Diff(want, childMap(dashboard, "data")); diff != "" {
		t.Errorf("the ConfigMap differs from %s (-file +ConfigMap):\n%s", dashboardFile, diff)
	}
}
