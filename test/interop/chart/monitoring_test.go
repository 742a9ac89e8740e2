package chart

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
)

const (
	alertsFile        = "alerts.yaml"
	trafficAlertsFile = "traffic-alerts.yaml"
)

// dashboardFiles are the dashboards' files by their keys in the ConfigMap.
var dashboardFiles = map[string]string{
	"tunnel-gateway.json":         "dashboard.json",
	"tunnel-gateway-traffic.json": "traffic-dashboard.json",
}

// chartFile reads one of the chart's files that is not a template.
func chartFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(chartDir + "/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAlertsAndDashboardsAreRenderedVerbatim checks that Helm changes only the thresholds
// in the alerts and the dashboards. They contain template expressions for Prometheus and
// Grafana, which Helm must not evaluate.
func TestAlertsAndDashboardsAreRenderedVerbatim(t *testing.T) {
	all := objects(t, render(t, "--values", "testdata/everything.values.yaml"))
	want := append(alertGroups(t, alertsFile, strings.NewReplacer()),
		alertGroups(t, trafficAlertsFile, strings.NewReplacer("> 5 # threshold", "> 2.5", "> 2500 # threshold", "> 500"))...)
	if diff := cmp.Diff(map[string]any{"groups": want}, childMap(onlyObject(t, all, "PrometheusRule"), "spec")); diff != "" {
		t.Errorf("the PrometheusRule differs from the files (-files +rule):\n%s", diff)
	}
	dashboards := map[string]any{}
	for key, file := range dashboardFiles {
		dashboards[key] = string(chartFile(t, file))
	}
	if diff := cmp.Diff(dashboards, childMap(onlyObject(t, all, "ConfigMap"), "data")); diff != "" {
		t.Errorf("the ConfigMap differs from the files (-files +ConfigMap):\n%s", diff)
	}
}

// alertGroups returns the groups in a file with alerts, with other thresholds.
func alertGroups(t *testing.T, file string, thresholds *strings.Replacer) []any {
	t.Helper()
	text := thresholds.Replace(string(chartFile(t, file)))
	var parsed struct{ Groups []any }
	if err := yaml.Unmarshal([]byte(text), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed.Groups
}

// TestAlertsWithAThresholdAreRenderedIfItIsSet checks which alerts the PrometheusRule has.
func TestAlertsWithAThresholdAreRenderedIfItIsSet(t *testing.T) {
	always := []string{"tunnel-gateway", "tunnel-gateway-backends", "tunnel-gateway-series", "tunnel-gateway-access-log"}
	for set, want := range map[string][]string{
		"": always,
		"metrics.prometheusRule.routeErrorPercent=0":          always,
		"metrics.prometheusRule.routeErrorPercent=0.5":        append(slices.Clone(always), "tunnel-gateway-route-errors"),
		"metrics.prometheusRule.routeLatencyMilliseconds=250": append(slices.Clone(always), "tunnel-gateway-route-latency"),
	} {
		rule := onlyObject(t, objects(t, render(t, "--set", "metrics.prometheusRule.enabled=true", "--set", set)), "PrometheusRule")
		var got []string
		for _, group := range childMap(rule, "spec")["groups"].([]any) {
			got = append(got, group.(map[string]any)["name"].(string))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("groups with %q (-want +got):\n%s", set, diff)
		}
	}
}

// TestThePodMonitorNamesTheGateway checks that the PodMonitor reads the labels that the
// controller sets on the pods.
func TestThePodMonitorNamesTheGateway(t *testing.T) {
	monitor := onlyObject(t, objects(t, render(t, "--set", "metrics.podMonitor.enabled=true")), "PodMonitor")
	var spec struct {
		Selector            struct{ MatchExpressions []map[string]string }
		PodMetricsEndpoints []struct {
			Port, Path  string
			Relabelings []struct {
				SourceLabels []string
				TargetLabel  string
			}
		}
	}
	text, err := yaml.Marshal(childMap(monitor, "spec"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &spec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]string{{"key": connector.TunnelLabel, "operator": "Exists"}}, spec.Selector.MatchExpressions); diff != "" {
		t.Errorf("the PodMonitor selects other pods than the connectors (-want +got):\n%s", diff)
	}
	// Prometheus replaces characters that its label names cannot contain.
	meta := func(label string) string {
		return "__meta_kubernetes_pod_label_" + regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(label, "_")
	}
	labels := map[string]string{meta(connector.GatewayNamespaceLabel): "gateway_namespace", meta(gatewayv1.GatewayNameLabelKey): "gateway_name"}
	paths := map[string]string{}
	for _, endpoint := range spec.PodMetricsEndpoints {
		paths[endpoint.Port] = endpoint.Path
		got := map[string]string{}
		for _, r := range endpoint.Relabelings {
			got[strings.Join(r.SourceLabels, ";")] = r.TargetLabel
		}
		if diff := cmp.Diff(labels, got); diff != "" {
			t.Errorf("relabelings of the port %s (-want +got):\n%s", endpoint.Port, diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"metrics": "/metrics", "envoy": "/stats/prometheus"}, paths); diff != "" {
		t.Errorf("ports (-want +got):\n%s", diff)
	}
}
