package metrics

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// interval is the scrape interval.
const interval = time.Minute

var (
	queryParser   = parser.NewParser(parser.Options{})
	sharedGateway = types.NamespacedName{Namespace: "platform", Name: "shared"}
	startTime     = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// prometheusServer scrapes a registry and evaluates queries.
type prometheusServer struct {
	t *testing.T
	// registries has one registry for each pod in releasePods. The first pod leads and
	// records metrics.
	registries [2]*prometheus.Registry
	*metrics.Metrics
	// secondPod records metrics in the second pod's registry, which exports no Gateway
	// metrics until the pod leads.
	secondPod *metrics.Metrics
	// replicas are the leader metric's values in all controllers' pods.
	replicas map[replica]float64
	db       *tsdb.DB
	now      time.Time
}

// newServer creates a Prometheus server without data.
func newServer(t *testing.T) *prometheusServer {
	t.Helper()
	db, err := tsdb.Open(t.TempDir(), nil, nil, tsdb.DefaultOptions(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	registries := [2]*prometheus.Registry{prometheus.NewRegistry(), prometheus.NewRegistry()}
	return &prometheusServer{t: t, registries: registries, Metrics: metrics.New(registries[0]), secondPod: metrics.New(registries[1]), replicas: map[replica]float64{releasePods[0]: 1, releasePods[1]: 0}, db: db, now: startTime}
}

// advance advances the clock by n minutes. It calls record before the scrape in each
// minute.
func (s *prometheusServer) advance(n int, record func()) {
	s.t.Helper()
	for range n {
		record()
		s.now = s.now.Add(interval)
		s.scrape()
	}
}

// scrape stores all pods' metrics with the labels that Prometheus adds.
func (s *prometheusServer) scrape() {
	s.t.Helper()
	appender := s.db.Appender(s.t.Context())
	for i, registry := range s.registries {
		s.addPod(appender, releasePods[i], registry)
	}
	s.addLeaderStatus(appender)
	if err := appender.Commit(); err != nil {
		s.t.Fatal(err)
	}
}

func (s *prometheusServer) addPod(appender storage.Appender, pod replica, registry *prometheus.Registry) {
	s.t.Helper()
	families, err := registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	s.addFamilies(appender, pod.target(), families)
}

// addFamilies stores the metrics that the families contain, with the target's labels.
func (s *prometheusServer) addFamilies(appender storage.Appender, target map[string]string, families []*dto.MetricFamily) {
	s.t.Helper()
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for suffix, value := range metricValues(metric) {
				s.add(appender, target, family.GetName(), suffix, metric, value)
			}
		}
	}
}

// seriesSuffix is the suffix in a series' name and a bucket's upper bound.
type seriesSuffix struct{ suffix, bound string }

// metricValues returns a metric's values. A histogram has several series.
func metricValues(metric *dto.Metric) map[seriesSuffix]float64 {
	h := metric.GetHistogram()
	if h == nil {
		return map[seriesSuffix]float64{{}: metric.GetCounter().GetValue() + metric.GetGauge().GetValue()}
	}
	values := map[seriesSuffix]float64{
		{suffix: "_sum"}:                   h.GetSampleSum(),
		{suffix: "_count"}:                 float64(h.GetSampleCount()),
		{suffix: "_bucket", bound: "+Inf"}: float64(h.GetSampleCount()),
	}
	for _, bucket := range h.GetBucket() {
		values[seriesSuffix{"_bucket", strconv.FormatFloat(bucket.GetUpperBound(), 'g', -1, 64)}] = float64(bucket.GetCumulativeCount())
	}
	return values
}

func (s *prometheusServer) add(appender storage.Appender, target map[string]string, name string, series seriesSuffix, metric *dto.Metric, value float64) {
	s.t.Helper()
	pairs := maps.Clone(target)
	pairs[model.MetricNameLabel] = name + series.suffix
	for _, label := range metric.GetLabel() {
		if _, exists := pairs[label.GetName()]; exists {
			s.t.Fatalf("%s: Prometheus would rename the label %s", name, label.GetName())
		}
		pairs[label.GetName()] = label.GetValue()
	}
	if series.bound != "" {
		pairs[labels.BucketLabel] = series.bound
	}
	if _, err := appender.Append(0, labels.FromMap(pairs), s.now.UnixMilli(), value); err != nil {
		s.t.Fatal(err)
	}
}

// query evaluates the expression at the current time.
func (s *prometheusServer) query(expression string) promql.Vector {
	s.t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: queryParser})
	defer func() {
		if err := engine.Close(); err != nil {
			s.t.Error(err)
		}
	}()
	query, err := engine.NewInstantQuery(s.t.Context(), s.db, nil, expression, s.now)
	if err != nil {
		s.t.Fatalf("%s: %v", expression, err)
	}
	defer query.Close()
	vector, err := query.Exec(s.t.Context()).Vector()
	if err != nil {
		s.t.Fatalf("%s: %v", expression, err)
	}
	return slices.Clone(vector)
}

// recordAll records a value for each metric.
func (s *prometheusServer) recordAll() {
	s.SetZone("example.com", metrics.Zone{Verdicts: map[string]int{"Managed": 3, "Missing": 1}, Records: 20, Quota: 200, ReadAt: s.now})
	s.SetAccess("account", metrics.Access{Reasons: map[string]int{"Protected": 3}, Managed: 3, Total: 20, ReadAt: s.now})
	s.CountApplicationChange("account", "create", nil)
	s.CountRecordChanges("example.com", "create", 1, nil)
	s.CountRecordChanges("example.com", "create", 1, provider.ErrForbidden)
	s.SetConnectedEnvoys(sharedGateway, 2)
	s.RecordXDSPush(sharedGateway, metrics.XDSRoutes)
	s.RecordXDSRejection(sharedGateway, metrics.XDSRoutes)
	s.ObserveAcknowledgement(metrics.XDSRoutes, 20*time.Millisecond)
	s.SetCertificateExpiry(startTime.Add(60*24*time.Hour), startTime.Add(365*24*time.Hour))
	s.t.Helper()
	n := 3
	s.SetGateway(sharedGateway, metrics.Gateway{
		Programmed: true, DataPlane: &metrics.DataPlane{Ready: true}, UncountedPairs: &n, DataPlaneChangeStart: s.now.Add(-time.Minute), Paused: true, PausedSince: s.now.Add(-time.Minute), Rules: &n, Listeners: map[metrics.ListenerState]int{metrics.ListenerProgrammed: 2},
		Connectors: &metrics.Connectors{Ready: true, Desired: 2, Available: 2},
		Limits:     map[limits.Name]metrics.LimitUsage{limits.RulesPerTunnel: {Used: 3, Limit: 1000}},
		AboveLimit: map[metrics.LimitedKind]int{metrics.LimitedRoute: 1},
	})
	s.SetOldestChange(sharedGateway, s.now)
	s.RecordPush(sharedGateway, 1000)
	s.RecordConfigurationChange(sharedGateway, "team-a")
	s.ObserveChangeToPush(time.Second)
	s.RecordDriftRepair(sharedGateway)
	s.RecordDriftContested(sharedGateway)
	s.RecordError(sharedGateway, conditions.ReasonCloudflareUnavailable)
	s.SetGatewayMissing(sharedGateway, s.now.Add(-time.Minute))
	s.SetUnwrittenStatuses(sharedGateway, 2)
	s.SetAccount("west", 10, 1)
	s.callProvider(nil)
	s.callProvider(&provider.UnavailableError{Err: errors.New("reset")})
	s.callProvider(&provider.RateLimitedError{RetryAfter: time.Second, Budget: true})
}

// callProvider calls a provider that returns the error.
func (s *prometheusServer) callProvider(err error) {
	s.callProviderWithPriority(provider.PriorityChange, err)
}

// callProviderWithPriority calls a provider that returns the error, with the priority.
func (s *prometheusServer) callProviderWithPriority(priority provider.Priority, err error) {
	cloud := fake.New()
	cloud.Fail(fake.OpTunnels, err)
	_, _ = s.Meter(cloud, "west").Tunnels(provider.WithPriority(s.t.Context(), priority))
}

// checkNames checks that the controller exports all metrics and labels in the expression.
func checkNames(t *testing.T, expression string) {
	t.Helper()
	parsed, err := queryParser.ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return
	}
	known := map[string]bool{} // labels on all metrics in the expression
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			exported := metricLabels(t, selector.Name)
			for _, matcher := range selector.LabelMatchers {
				checkMatcher(t, expression, matcher, exported)
			}
			maps.Copy(known, exported)
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		checkNode(t, expression, node, known)
		return nil
	})
}

// checkNode checks the labels in an aggregation or a binary operation, and the arguments
// in a function call.
func checkNode(t *testing.T, expression string, node parser.Node, known map[string]bool) {
	t.Helper()
	var used []string
	switch n := node.(type) {
	case *parser.AggregateExpr:
		used = n.Grouping
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			used = append(n.VectorMatching.MatchingLabels, n.VectorMatching.Include...)
		}
	case *parser.Call:
		checkCall(t, expression, n)
	}
	for _, label := range used {
		if !known[label] {
			t.Errorf("%s: no metric has the label %s", expression, label)
		}
	}
}

// checkCall checks that the expression calculates rates only for counters.
func checkCall(t *testing.T, expression string, call *parser.Call) {
	t.Helper()
	if !slices.Contains([]string{"rate", "irate", "increase"}, call.Func.Name) {
		return
	}
	matrix, ok := call.Args[0].(*parser.MatrixSelector)
	if !ok {
		t.Errorf("%s: %s of an expression that is not a metric", expression, call.Func.Name)
		return
	}
	name := matrix.VectorSelector.(*parser.VectorSelector).Name
	if m, _ := findMetric(name); m.Type == metrics.Gauge {
		t.Errorf("%s: %s of the gauge %s", expression, call.Func.Name, name)
	}
}

// checkMatcher checks that the metric exports the label, and that the label can have
// the value.
func checkMatcher(t *testing.T, expression string, matcher *labels.Matcher, exported map[string]bool) {
	t.Helper()
	if matcher.Name != model.MetricNameLabel && !exported[matcher.Name] {
		t.Errorf("%s: the metric has no label %s", expression, matcher.Name)
	}
	for _, m := range metrics.All {
		for _, label := range m.Labels {
			if label.Name != matcher.Name || len(label.Values) == 0 || !strings.Contains(expression, m.Name) {
				continue
			}
			for value := range strings.SplitSeq(matcher.Value, "|") {
				if !slices.ContainsFunc(label.Values, func(v metrics.Value) bool { return v.Name == value }) {
					t.Errorf("%s: label %s never has the value %q", expression, label.Name, value)
				}
			}
		}
	}
}

// findMetric returns the metric for a series and whether the series is a bucket.
func findMetric(series string) (metrics.Metric, bool) {
	for _, m := range append(slices.Clone(metrics.All), leaderMetric) {
		suffix, ok := strings.CutPrefix(series, m.Name)
		part := slices.Contains([]string{"_bucket", "_sum", "_count"}, suffix)
		if ok && (m.Type == metrics.Histogram && part || m.Type != metrics.Histogram && suffix == "") {
			return m, suffix == "_bucket"
		}
	}
	return metrics.Metric{}, false
}

// metricLabels returns the labels on a series, including the pod's namespace.
func metricLabels(t *testing.T, series string) map[string]bool {
	t.Helper()
	m, bucket := findMetric(series)
	if m.Name == "" {
		t.Errorf("metric %s does not exist", series)
	}
	names := map[string]bool{"namespace": true} // Prometheus adds the pod's namespace
	for _, name := range m.LabelNames() {
		names[name] = true
	}
	if bucket {
		names[labels.BucketLabel] = true
	}
	return names
}

// hasFiniteValue reports whether the vector contains a value that a panel can show.
func hasFiniteValue(vector promql.Vector) bool {
	return slices.ContainsFunc(vector, func(s promql.Sample) bool { return !math.IsNaN(s.F) && !math.IsInf(s.F, 0) })
}
