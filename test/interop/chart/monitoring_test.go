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

// chartFile reads a file of the chart that is no template.
func chartFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(chartDir + "/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestMonitoring reads the alerts and the dashboard back from what the chart
// renders. Both have templates of their own, for Prometheus and for Grafana,
// which have to arrive as they are.
func TestMonitoring(t *testing.T) {
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
	if diff := cmp.Diff(groups, child(rule, "spec")); diff != "" {
		t.Errorf("the PrometheusRule differs from %s (-file +rule):\n%s", alertsFile, diff)
	}
	want := map[string]any{"tunnel-gateway.json": string(chartFile(t, dashboardFile))}
	if diff := cmp.Diff(want, child(dashboard, "data")); diff != "" {
		t.Errorf("the ConfigMap differs from %s (-file +ConfigMap):\n%s", dashboardFile, diff)
	}
}
