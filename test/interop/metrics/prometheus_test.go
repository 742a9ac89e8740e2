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

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// interval is that of the scrapes.
const interval = time.Minute

var (
	queries = parser.NewParser(parser.Options{})
	shared  = types.NamespacedName{Namespace: "platform", Name: "shared"}
	begin   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// prometheusServer scrapes a registry and answers queries.
type prometheusServer struct {
	t *testing.T
	// registries are those of the pods of a release, by their order; the first is
	// that of the one that leads, and records.
	registries [2]*prometheus.Registry
	*metrics.Metrics
	// second records what the other pod exports: nothing of Gateways, but just after
	// it led.
	second *metrics.Metrics
	// replicas are the pods of all controllers, and 1 for those that lead.
	replicas map[replica]float64
	db       *tsdb.DB
	now      time.Time
}

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
	return &prometheusServer{t: t, registries: registries, Metrics: metrics.New(registries[0]), second: metrics.New(registries[1]), replicas: map[replica]float64{ours[0]: 1, ours[1]: 0}, db: db, now: begin}
}

// minutes lets time pass, with something that happens before each scrape.
func (s *prometheusServer) minutes(n int, happens func()) {
	s.t.Helper()
	for range n {
		happens()
		s.now = s.now.Add(interval)
		s.scrape()
	}
}

// scrape stores the metrics as Prometheus does, with the labels of a pod.
func (s *prometheusServer) scrape() {
	s.t.Helper()
	appender := s.db.Appender(s.t.Context())
	for i, registry := range s.registries {
		s.addPod(appender, ours[i], registry)
	}
	s.addLeadership(appender)
	if err := appender.Commit(); err != nil {
		s.t.Fatal(err)
	}
}

// addPod stores what a pod exports.
func (s *prometheusServer) addPod(appender storage.Appender, pod replica, registry *prometheus.Registry) {
	s.t.Helper()
	families, err := registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for suffix, value := range valuesOf(metric) {
				s.add(appender, pod, family.GetName(), suffix, metric, value)
			}
		}
	}
}

// sample is the end of a series' name, and of a bucket its bound.
type sample struct{ suffix, bound string }

func valuesOf(metric *dto.Metric) map[sample]float64 {
	h := metric.GetHistogram()
	if h == nil {
		return map[sample]float64{{}: metric.GetCounter().GetValue() + metric.GetGauge().GetValue()}
	}
	values := map[sample]float64{
		{suffix: "_sum"}:                   h.GetSampleSum(),
		{suffix: "_count"}:                 float64(h.GetSampleCount()),
		{suffix: "_bucket", bound: "+Inf"}: float64(h.GetSampleCount()),
	}
	for _, bucket := range h.GetBucket() {
		values[sample{"_bucket", strconv.FormatFloat(bucket.GetUpperBound(), 'g', -1, 64)}] = float64(bucket.GetCumulativeCount())
	}
	return values
}

func (s *prometheusServer) add(appender storage.Appender, pod replica, name string, of sample, metric *dto.Metric, value float64) {
	s.t.Helper()
	pairs := map[string]string{model.MetricNameLabel: name + of.suffix, "namespace": pod.namespace, "pod": pod.pod, "job": "tunnel-gateway"}
	for _, label := range metric.GetLabel() {
		if _, taken := pairs[label.GetName()]; taken {
			s.t.Fatalf("%s: Prometheus would rename the label %s", name, label.GetName())
		}
		pairs[label.GetName()] = label.GetValue()
	}
	if of.bound != "" {
		pairs[labels.BucketLabel] = of.bound
	}
	if _, err := appender.Append(0, labels.FromMap(pairs), s.now.UnixMilli(), value); err != nil {
		s.t.Fatal(err)
	}
}

// query returns what the expression gives now.
func (s *prometheusServer) query(expression string) promql.Vector {
	s.t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute, Parser: queries})
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

// everything happens to a Gateway.
func (s *prometheusServer) everything() {
	s.t.Helper()
	n := 3
	s.SetGateway(shared, metrics.Gateway{
		Programmed: true, Paused: true, Rules: &n, Listeners: map[metrics.ListenerState]int{metrics.ListenerProgrammed: 2},
		Connectors: &metrics.Connectors{Ready: true, Wanted: 2, Available: 2},
	})
	s.SetOldestChange(shared, s.now)
	s.RecordPush(shared, 1000)
	s.ObserveChangeToPush(time.Second)
	s.RecordDriftRepair(shared)
	s.RecordDriftFight(shared)
	s.RecordError(shared, tunnel.ReasonUnavailable)
	s.SetGatewayMissing(shared, s.now.Add(-time.Minute))
	s.SetAccount("west", 10, 1)
	s.call(nil)
	s.call(&provider.UnavailableError{Err: errors.New("reset")})
	s.call(&provider.RateLimitedError{RetryAfter: time.Second, Budget: true})
}

// call is one at a provider that answers with the error.
func (s *prometheusServer) call(err error) { s.callFor(provider.PriorityChange, err) }

func (s *prometheusServer) callFor(priority provider.Priority, err error) {
	cloud := fake.New()
	cloud.Fail(fake.OpTunnels, err)
	_, _ = s.Meter(cloud, "west").Tunnels(provider.WithPriority(s.t.Context(), priority))
}

// checkNames parses the expression, and wants everything in it to be exported.
func checkNames(t *testing.T, expression string) {
	t.Helper()
	parsed, err := queries.ParseExpr(expression)
	if err != nil {
		t.Errorf("%s: %v", expression, err)
		return
	}
	known := map[string]bool{} // the labels of all metrics in it
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			own := labelsOf(t, selector.Name)
			for _, matcher := range selector.LabelMatchers {
				checkMatcher(t, expression, matcher, own)
			}
			maps.Copy(known, own)
		}
		return nil
	})
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		checkNode(t, expression, node, known)
		return nil
	})
}

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
			t.Errorf("%s: no metric in it has the label %s", expression, label)
		}
	}
}

// checkCall: only what counts has a rate.
func checkCall(t *testing.T, expression string, call *parser.Call) {
	t.Helper()
	if !slices.Contains([]string{"rate", "irate", "increase"}, call.Func.Name) {
		return
	}
	matrix, ok := call.Args[0].(*parser.MatrixSelector)
	if !ok {
		t.Errorf("%s: %s of a subquery", expression, call.Func.Name)
		return
	}
	name := matrix.VectorSelector.(*parser.VectorSelector).Name
	if m, _ := find(name); m.Type == metrics.Gauge {
		t.Errorf("%s: %s of the gauge %s", expression, call.Func.Name, name)
	}
}

// checkMatcher wants the label to be one of the metric, and the value one that it
// can have.
func checkMatcher(t *testing.T, expression string, matcher *labels.Matcher, own map[string]bool) {
	t.Helper()
	if matcher.Name != model.MetricNameLabel && !own[matcher.Name] {
		t.Errorf("%s: the metric has no label %s", expression, matcher.Name)
	}
	for _, m := range metrics.All {
		for _, label := range m.Labels {
			if label.Name != matcher.Name || len(label.Values) == 0 || !strings.Contains(expression, m.Name) {
				continue
			}
			for value := range strings.SplitSeq(matcher.Value, "|") {
				if !slices.ContainsFunc(label.Values, func(v metrics.Value) bool { return v.Name == value }) {
					t.Errorf("%s: %s is never %q", expression, label.Name, value)
				}
			}
		}
	}
}

// find returns the metric that a series belongs to, and whether it is a bucket.
func find(series string) (metrics.Metric, bool) {
	for _, m := range append(slices.Clone(metrics.All), leadership) {
		suffix, ok := strings.CutPrefix(series, m.Name)
		part := slices.Contains([]string{"_bucket", "_sum", "_count"}, suffix)
		if ok && (m.Type == metrics.Histogram && part || m.Type != metrics.Histogram && suffix == "") {
			return m, suffix == "_bucket"
		}
	}
	return metrics.Metric{}, false
}

func labelsOf(t *testing.T, series string) map[string]bool {
	t.Helper()
	m, bucket := find(series)
	if m.Name == "" {
		t.Errorf("there is no metric %s", series)
	}
	own := map[string]bool{"namespace": true} // Prometheus adds that of the pod
	for _, name := range m.LabelNames() {
		own[name] = true
	}
	if bucket {
		own[labels.BucketLabel] = true
	}
	return own
}

// finite reports whether there is something to draw.
func finite(vector promql.Vector) bool {
	return slices.ContainsFunc(vector, func(s promql.Sample) bool { return !math.IsNaN(s.F) && !math.IsInf(s.F, 0) })
}
