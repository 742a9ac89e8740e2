package envoy

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metricsBed is an Envoy that serves the routes in testdata/metrics, with its admin
// interface.
type metricsBed struct {
	*bed
	admin string
}

var counting struct {
	sync.Once
	*metricsBed
	err error
}

// startMetrics returns the Envoy that all tests of metrics share.
func startMetrics(t *testing.T) *metricsBed {
	t.Helper()
	path := findEnvoy(t)
	counting.Do(func() {
		m := &metricsBed{bed: &bed{}}
		if counting.err = m.startCounting(path); counting.err == nil {
			counting.metricsBed = m
		}
	})
	if counting.err != nil {
		t.Fatal(counting.err)
	}
	return counting.metricsBed
}

func (m *metricsBed) startCounting(path string) error {
	source, table, err := buildTable("testdata/metrics")
	if err != nil {
		return err
	}
	m.table = table
	if m.dir, err = os.MkdirTemp("", "tunnel-gateway-envoy-"); err != nil {
		return err
	}
	if m.backends, err = startBackends(source.Objects, m.dir); err != nil {
		return err
	}
	if m.admin, err = freeAddress(); err != nil {
		return err
	}
	m.backends.addresses[m.admin] = m.admin
	if m.configuration, err = m.render(source); err != nil {
		return err
	}
	// Envoy adds the values of its threads to a histogram when it flushes.
	host, port, _ := strings.Cut(m.admin, ":")
	admin := fmt.Sprintf(`{"statsFlushInterval": "0.1s", "admin": {"address": {"socketAddress": {"address": %q, "portValue": %s}}},`, host, port)
	m.configuration = admin + strings.TrimPrefix(m.configuration, "{")
	return m.run(path, m.open, m.admin)
}

// series are the values of metrics by name and labels. For a histogram, they are its count.
type series map[string]float64

// read returns the metrics by route, whose names begin without their common prefix.
func (m *metricsBed) read(t *testing.T) series {
	t.Helper()
	response, err := http.Get("http://" + m.admin + "/stats/prometheus")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	all := series{}
	for name, family := range families {
		name, ok := strings.CutPrefix(name, "envoy_tunnel_gateway_")
		if !ok {
			continue
		}
		for _, metric := range family.Metric {
			all[name+describeLabels(metric.Label)] = valueOf(metric)
		}
	}
	return all
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	default:
		return float64(m.Histogram.GetSampleCount())
	}
}

// describeLabels writes the labels of a route as "{HTTPRoute default/web 0 a.example.com default/one:80}",
// and then the others.
func describeLabels(labels []*dto.LabelPair) string {
	of := map[string]string{}
	for _, l := range labels {
		of[l.GetName()] = l.GetValue()
	}
	text := of["route_kind"]
	if of["route_name"] != "" {
		text = fmt.Sprintf("%s %s/%s %s %s", of["route_kind"], of["route_namespace"], of["route_name"], of["rule"], of["hostname"])
	}
	if of["backend"] != "" {
		text += " " + of["backend"]
	}
	for _, name := range []string{"code", "flags", "grpc_status"} {
		if value, ok := of[name]; ok {
			text += fmt.Sprintf(" %s=%s", name, value)
		}
	}
	return "{" + text + "}"
}

// settled returns the metrics after Envoy has added all requests to the histograms.
func (m *metricsBed) settled(t *testing.T) (all series) {
	t.Helper()
	eventually(t, "the histograms have all requests", func() bool {
		all = m.read(t)
		return all.sum("requests_total{") == all.sum("request_duration_milliseconds{")
	})
	return all
}

// sum adds up the series with the prefix.
func (s series) sum(prefix string) (sum float64) {
	for name, value := range s {
		if strings.HasPrefix(name, prefix) {
			sum += value
		}
	}
	return sum
}

// since returns what was added.
func (s series) since(before series) series {
	added := maps.Clone(s)
	for name, value := range before {
		added[name] -= value
	}
	maps.DeleteFunc(added, func(_ string, value float64) bool { return value == 0 })
	return added
}

// wantAddedSince checks what was added to all metrics, in the form "name{labels} value".
func (m *metricsBed) wantAddedSince(t *testing.T, before series, want ...string) {
	t.Helper()
	m.wantOnly(t, before, "", want...)
}

// wantOnly checks what was added to the metrics with the prefix. It waits for that, because
// Envoy counts a request after the client has its response.
func (m *metricsBed) wantOnly(t *testing.T, before series, prefix string, want ...string) {
	t.Helper()
	slices.Sort(want)
	var diff string
	for range 100 {
		got := []string{}
		for name, value := range m.read(t).since(before) {
			if strings.HasPrefix(name, prefix) {
				got = append(got, fmt.Sprintf("%s %v", name, value))
			}
		}
		slices.Sort(got)
		if diff = cmp.Diff(want, got); diff == "" {
			return
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // polls Envoy
	}
	t.Errorf("added to the metrics (-want +got):\n%s", diff)
}
