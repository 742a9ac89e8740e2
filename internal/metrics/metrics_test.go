package metrics_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

var sharedGateway = types.NamespacedName{Namespace: "platform", Name: "shared"}

// recordGateway records every Gateway metric.
func recordGateway(m *metrics.Metrics, name types.NamespacedName) {
	n, uncounted := 3, 9
	m.SetGateway(name, metrics.Gateway{
		Programmed: true, Paused: true, Throttled: true, Rules: &n,
		Listeners:    map[metrics.ListenerState]int{metrics.ListenerProgrammed: 2, metrics.ListenerConflicted: 1},
		ListenerSets: map[metrics.ListenerSetState]int{metrics.ListenerSetRejected: 1},
		Routes:       map[metrics.RouteState]int{metrics.RouteAccepted: 4},
		Connectors:   &metrics.Connectors{Ready: true, Desired: 2, Available: 1},
		Limits:       map[limits.Name]metrics.LimitUsage{limits.RulesPerTunnel: {Used: 900, Limit: 1000}},
		AboveLimit:   map[metrics.LimitedKind]int{metrics.LimitedRoute: 7},

		UncountedPairs: &uncounted,

		DataPlane: &metrics.DataPlane{Ready: true, Rejected: true, LimitExceeded: true}, DataPlaneChangeStart: time.Unix(1650, 0), PausedSince: time.Unix(1600, 0),
	})
	m.RecordPush(name, 1000)
	m.RecordPush(name, 200)
	m.RecordConfigurationChange(name, "team-a")
	m.ObserveChangeToPush(2 * time.Second)
	m.RecordDriftRepair(name)
	m.RecordDriftContested(name)
	m.RecordError(name, conditions.ReasonCloudflareUnavailable)
	m.SetOldestChange(name, time.Unix(1500, 0))
	m.SetGatewayMissing(name, time.Unix(1600, 0))
	m.SetUnwrittenStatuses(name, 5)
	m.SetConnectedEnvoys(name, 2)
	m.RecordXDSPush(name, metrics.XDSRoutes)
	m.RecordXDSRejection(name, metrics.XDSClusters)
	m.ObserveAcknowledgement(metrics.XDSRoutes, 20*time.Millisecond)
}

// recordAccount records an inventory.
func recordAccount(m *metrics.Metrics) { m.SetAccount("west", 11, 2) }

// recordCertificates records when certificates expire.
func recordCertificates(m *metrics.Metrics) {
	m.SetCertificateExpiry(time.Unix(1700, 0), time.Unix(1800, 0))
}

func gather(t *testing.T, registry *prometheus.Registry) []*dto.MetricFamily {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// samples returns all nonzero values by series name and labels. For a histogram it
// returns the count and the sum.
func samples(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, family := range gather(t, registry) {
		for _, metric := range family.GetMetric() {
			name := family.GetName() + labelText(metric)
			switch {
			case metric.GetHistogram().GetSampleCount() > 0:
				values[name+" count"] = float64(metric.GetHistogram().GetSampleCount())
				values[name+" sum"] = metric.GetHistogram().GetSampleSum()
			case metric.GetCounter().GetValue()+metric.GetGauge().GetValue() != 0:
				values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return values
}

func labelText(metric *dto.Metric) string {
	var parts []string
	for _, label := range metric.GetLabel() {
		parts = append(parts, label.GetName()+"="+label.GetValue())
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestExportedMetricsMatchTheirDefinitions(t *testing.T) {
	// The exported metrics follow the Prometheus naming rules and match their
	// definitions.
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordGateway(m, sharedGateway)
	recordAccount(m)
	recordCertificates(m)
	recordZone(m, "example.com")
	recordAccess(m, "account")
	m.Meter(fake.New(), "west")
	families := gather(t, registry)
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Errorf("%s: %s", problem.Metric, problem.Text)
	}
	exported := map[string][]string{}
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "tunnel_gateway_") {
			t.Errorf("%s does not have the prefix tunnel_gateway_", family.GetName())
		}
		kind := strings.ToLower(family.GetType().String())
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, label.GetName())
			}
			exported[family.GetName()] = append([]string{kind, family.GetHelp()}, labels...)
		}
	}
	defined := map[string][]string{}
	for _, m := range metrics.All {
		labels := slices.Sorted(slices.Values(m.LabelNames()))
		defined[m.Name] = append([]string{string(m.Type), m.Help}, labels...)
	}
	if diff := cmp.Diff(defined, exported); diff != "" {
		t.Errorf("defined and exported metrics differ (-defined +exported):\n%s", diff)
	}
}

func TestUnitsMatchTheMetricNames(t *testing.T) {
	// A unit in a metric name matches its definition.
	for _, m := range metrics.All {
		if strings.Contains(m.Name, "_seconds") != (m.Unit == "seconds") || strings.Contains(m.Name, "bytes") != (m.Unit == "bytes") {
			t.Errorf("the unit of %s is %s", m.Name, m.Unit)
		}
		if (m.Type == metrics.Histogram) != (len(m.Buckets) > 0) || !slices.IsSorted(m.Buckets) {
			t.Errorf("%s is a %s with buckets %v", m.Name, m.Type, m.Buckets)
		}
		if m.Unit == "" || !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s has no unit, or its help text is not a sentence", m.Name)
		}
	}
}

// reservedLabels are the labels that Prometheus adds to scraped pods.
var reservedLabels = []string{"namespace", "pod", "service", "container", "endpoint", "job", "instance"}

func TestLabelsAreDocumented(t *testing.T) {
	word := regexp.MustCompile(`^([a-z][a-z_]*|([A-Z][a-z0-9]+)+)$`) // or a reason of a condition
	for _, m := range metrics.All {
		for _, label := range m.Labels {
			if slices.Contains(reservedLabels, label.Name) {
				t.Errorf("%s: Prometheus would rename the label %s", m.Name, label.Name)
			}
			if label.Help == "" {
				t.Errorf("%s: the label %s has no help text", m.Name, label.Name)
			}
			for _, value := range label.Values {
				if !word.MatchString(value.Name) || value.Help == "" {
					t.Errorf("%s: %s=%q is not a word or has no help text", m.Name, label.Name, value.Name)
				}
			}
		}
	}
}

func TestLabelValuesAreDocumented(t *testing.T) {
	// The label's definition lists every exported value.
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordGateway(m, sharedGateway)
	recordZone(m, "example.com")
	recordAccess(m, "account")
	m.Meter(fake.New(), "west")
	for _, family := range gather(t, registry) {
		i := slices.IndexFunc(metrics.All, func(m metrics.Metric) bool { return m.Name == family.GetName() })
		for _, metric := range family.GetMetric() {
			for _, pair := range metric.GetLabel() {
				for _, label := range metrics.All[i].Labels {
					defined := len(label.Values) == 0 || slices.ContainsFunc(label.Values, func(v metrics.Value) bool { return v.Name == pair.GetValue() })
					if label.Name == pair.GetName() && !defined {
						t.Errorf("%s has the undefined label value %s=%q", family.GetName(), label.Name, pair.GetValue())
					}
				}
			}
		}
	}
}

func TestGatewayMetricsHaveTheRecordedValues(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	other := types.NamespacedName{Namespace: "platform", Name: "other"}
	recordGateway(m, sharedGateway)
	m.RecordPush(other, 7)
	labels := "{gateway=shared,gateway_namespace=platform"
	want := map[string]float64{
		"tunnel_gateway_gateway_programmed" + labels + "}":                                                              1,
		"tunnel_gateway_gateway_paused_since_timestamp_seconds" + labels + "}":                                          1600,
		"tunnel_gateway_gateway_paused" + labels + "}":                                                                  1,
		"tunnel_gateway_configuration_throttled" + labels + "}":                                                         1,
		"tunnel_gateway_configuration_changes_total" + labels + ",source_namespace=team-a}":                             1,
		"tunnel_gateway_oldest_change_timestamp_seconds" + labels + "}":                                                 1500,
		"tunnel_gateway_gateway_missing_timestamp_seconds" + labels + "}":                                               1600,
		"tunnel_gateway_unwritten_statuses" + labels + "}":                                                              5,
		"tunnel_gateway_rules" + labels + "}":                                                                           3,
		"tunnel_gateway_listeners" + labels + ",state=programmed}":                                                      2,
		"tunnel_gateway_listeners" + labels + ",state=conflicted}":                                                      1,
		"tunnel_gateway_listener_sets" + labels + ",state=rejected}":                                                    1,
		"tunnel_gateway_routes" + labels + ",state=accepted}":                                                           4,
		"tunnel_gateway_data_plane_rejected" + labels + "}":                                                             1,
		"tunnel_gateway_envoy_uncounted_pairs" + labels + "}":                                                           9,
		"tunnel_gateway_data_plane_ready" + labels + "}":                                                                1,
		"tunnel_gateway_data_plane_limit_exceeded" + labels + "}":                                                       1,
		"tunnel_gateway_tunnel_data_plane_change_start_time_seconds" + labels + "}":                                     1650,
		"tunnel_gateway_connectors_ready" + labels + "}":                                                                1,
		"tunnel_gateway_connectors_wanted" + labels + "}":                                                               2,
		"tunnel_gateway_connectors_available" + labels + "}":                                                            1,
		"tunnel_gateway_limit_used" + labels + ",limit=rules_per_tunnel}":                                               900,
		"tunnel_gateway_limit" + labels + ",limit=rules_per_tunnel}":                                                    1000,
		"tunnel_gateway_above_limit" + labels + ",kind=route}":                                                          7,
		"tunnel_gateway_pushes_total" + labels + "}":                                                                    2,
		"tunnel_gateway_pushed_bytes_total" + labels + "}":                                                              1200,
		"tunnel_gateway_drift_repairs_total" + labels + "}":                                                             1,
		"tunnel_gateway_drift_fights_total" + labels + "}":                                                              1,
		"tunnel_gateway_reconcile_errors_total{gateway=shared,gateway_namespace=platform,reason=CloudflareUnavailable}": 1,
		"tunnel_gateway_connected_envoys" + labels + "}":                                                                2,
		"tunnel_gateway_xds_pushes_total" + labels + ",resources=routes}":                                               1,
		"tunnel_gateway_xds_rejections_total" + labels + ",resources=clusters}":                                         1,
		"tunnel_gateway_xds_acknowledgement_seconds{resources=routes} count":                                            1,
		"tunnel_gateway_xds_acknowledgement_seconds{resources=routes} sum":                                              0.02,
		"tunnel_gateway_change_to_push_seconds{} count":                                                                 1,
		"tunnel_gateway_change_to_push_seconds{} sum":                                                                   2,
		"tunnel_gateway_pushes_total{gateway=other,gateway_namespace=platform}":                                         1,
		"tunnel_gateway_pushed_bytes_total{gateway=other,gateway_namespace=platform}":                                   7,
	}
	if diff := cmp.Diff(want, samples(t, registry)); diff != "" {
		t.Errorf("series differ (-want +got):\n%s", diff)
	}

	// States that no longer occur have the value zero.
	m.SetGateway(sharedGateway, metrics.Gateway{})
	for _, name := range []string{"gateway_programmed", "listeners", "routes", "connectors_ready", "connectors_wanted"} {
		for series := range samples(t, registry) {
			if strings.HasPrefix(series, "tunnel_gateway_"+name+"{") {
				t.Errorf("%s is not zero", series)
			}
		}
	}
}

func TestDeleteGatewayDeletesAllItsSeries(t *testing.T) {
	// DeleteGateway deletes all series for the Gateway, including zeros, and no other
	// series.
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	sameName := types.NamespacedName{Namespace: "elsewhere", Name: "shared"}
	recordGateway(m, sameName)
	before := seriesOf(t, registry)
	recordGateway(m, sharedGateway)
	m.DeleteGateway(sharedGateway)
	m.SetUnwrittenStatuses(sharedGateway, 0)
	if diff := cmp.Diff(before, seriesOf(t, registry)); diff != "" {
		t.Errorf("series differ (-before +after):\n%s", diff)
	}
	m.DeleteGateway(sharedGateway)
	recordGateway(m, sharedGateway)
	if got := samples(t, registry)["tunnel_gateway_pushes_total{gateway=shared,gateway_namespace=platform}"]; got != 2 {
		t.Errorf("a recreated Gateway has %v pushes, want 2", got)
	}
}

// seriesOf returns every series as its name and labels.
func seriesOf(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	var all []string
	for _, family := range gather(t, registry) {
		for _, metric := range family.GetMetric() {
			all = append(all, family.GetName()+labelText(metric))
		}
	}
	slices.Sort(all)
	return all
}

func TestCountersBeginAtZero(t *testing.T) {
	// Prometheus detects the first increment only if the series existed before.
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	m.SetGateway(sharedGateway, metrics.Gateway{})
	m.Meter(fake.New(), "west")
	all := seriesOf(t, registry)
	for _, want := range []string{
		"tunnel_gateway_drift_fights_total{gateway=shared,gateway_namespace=platform}",
		"tunnel_gateway_reconcile_errors_total{gateway=shared,gateway_namespace=platform,reason=Unauthorized}",
		"tunnel_gateway_provider_calls_total{account=west,operation=write_configuration,result=rate_limited}",
		"tunnel_gateway_rate_budget_wait_seconds{account=west,priority=change,wait=queue}",
	} {
		if !slices.Contains(all, want) {
			t.Errorf("the series %s does not exist", want)
		}
	}
}

func TestAccountMetricsHaveTheRecordedValues(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	m.SetAccount("west", 12, 3)
	recordAccount(m)
	want := map[string]float64{
		"tunnel_gateway_account_tunnels{account=west}":  11,
		"tunnel_gateway_orphaned_tunnels{account=west}": 2,
	}
	got := samples(t, registry)
	for series, value := range want {
		if got[series] != value {
			t.Errorf("%s is %v, want %v", series, got[series], value)
		}
	}
}

func TestGatewaysAreRecordedConcurrently(t *testing.T) {
	// Several Gateways can be recorded concurrently.
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	done := make(chan struct{})
	for i := range 8 {
		go func() {
			name := types.NamespacedName{Namespace: "platform", Name: fmt.Sprint(i)}
			for range 50 {
				recordGateway(m, name)
				m.DeleteGateway(name)
			}
			recordGateway(m, name)
			done <- struct{}{}
		}()
	}
	for range 8 {
		<-done
	}
	if got := samples(t, registry)["tunnel_gateway_change_to_push_seconds{} count"]; got != 8*51 {
		t.Errorf("%v pushes were observed, want %d", got, 8*51)
	}
}

func TestMissingGatewayMetricExistsUntilItIsCleared(t *testing.T) {
	// The series for a missing Gateway exists until the time is cleared or DeleteGateway
	// runs.
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	m.SetGatewayMissing(sharedGateway, time.Unix(2500, 0))
	series := "tunnel_gateway_gateway_missing_timestamp_seconds{gateway=shared,gateway_namespace=platform}"
	if got := samples(t, registry)[series]; got != 2500 {
		t.Errorf("the Gateway is missing since %v, want 2500", got)
	}
	m.SetGatewayMissing(sharedGateway, time.Time{})
	if slices.Contains(seriesOf(t, registry), series) {
		t.Error("the series still exists after the time was cleared")
	}
	m.SetGatewayMissing(sharedGateway, time.Unix(2500, 0))
	m.DeleteGateway(sharedGateway) // the Gateway has no other series
	if got := seriesOf(t, registry); slices.Contains(got, series) {
		t.Error("the series still exists after the Gateway was deleted")
	}
}

func TestCertificateExpiryExistsWhileThereIsACertificate(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	recordCertificates(m)
	name := "tunnel_gateway_xds_certificate_expiry_timestamp_seconds"
	want := map[string]float64{name + "{certificate=envoy}": 1700, name + "{certificate=authority}": 1800}
	if diff := cmp.Diff(want, samples(t, registry)); diff != "" {
		t.Errorf("series differ (-want +got):\n%s", diff)
	}
	m.SetCertificateExpiry(time.Time{}, time.Unix(1900, 0))
	if diff := cmp.Diff(map[string]float64{name + "{certificate=authority}": 1900}, samples(t, registry)); diff != "" {
		t.Errorf("series differ (-want +got):\n%s", diff)
	}
}

func TestEveryReasonIsALabelValue(t *testing.T) {
	// Every reason in the problem catalogue is a label value.
	i := slices.IndexFunc(metrics.All, func(m metrics.Metric) bool { return m.Name == "tunnel_gateway_reconcile_errors_total" })
	last := metrics.All[i].Labels[len(metrics.All[i].Labels)-1]
	var got, want []string
	for _, value := range last.Values {
		got = append(got, value.Name)
	}
	for _, entry := range conditions.Problems {
		want = append(want, entry.Reason.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the values of the label %s differ (-want +got):\n%s", last.Name, diff)
	}
}

func TestFurtherNamespacesShareOneSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	for i := range 500 {
		m.RecordConfigurationChange(sharedGateway, fmt.Sprintf("team-%d", i))
	}
	m.RecordConfigurationChange(sharedGateway, "team-0")
	values := samples(t, registry)
	prefix := "tunnel_gateway_configuration_changes_total{gateway=shared,gateway_namespace=platform,source_namespace="
	if values[prefix+"_other}"] != 400 || values[prefix+"team-0}"] != 2 {
		t.Errorf("got %v, want 400 changes of other namespaces and 2 of team-0", values)
	}
}
