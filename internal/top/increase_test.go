package top

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestIncrease(t *testing.T) {
	for name, test := range map[string]struct{ before, after, want float64 }{
		"growth":         {3, 10, 7},
		"no request":     {3, 3, 0},
		"a new counter":  {0, 4, 4},
		"a reset":        {10, 4, 4},
		"a reset to 0":   {10, 0, 0},
		"both are empty": {0, 0, 0},
	} {
		if got := increase(test.before, test.after); got != test.want {
			t.Errorf("%s: increase = %v, want %v", name, got, test.want)
		}
	}
}

func TestOneResetBucketResetsTheHistogram(t *testing.T) {
	inf := math.Inf(1)
	before := map[float64]float64{5: 10, 25: 10, inf: 12}
	// The new sum exceeds the old one in the last bucket only.
	after := map[float64]float64{5: 3, 25: 4, inf: 20}
	if diff := cmp.Diff(after, increaseOf(before, after)); diff != "" {
		t.Errorf("increase differs (-want +got):\n%s", diff)
	}
	want := map[float64]float64{5: 1, 25: 2, inf: 2}
	if diff := cmp.Diff(want, increaseOf(before, map[float64]float64{5: 11, 25: 12, inf: 14})); diff != "" {
		t.Errorf("increase differs (-want +got):\n%s", diff)
	}
}

func TestASeriesThatVanishedCountsNothing(t *testing.T) {
	series := func(values map[string]float64) scrape {
		s := scrape{routes: newMetrics(), listeners: newMetrics()}
		for name, value := range values {
			s.routes.requests[name] = counter{labels: map[string]string{labelKind: "HTTPRoute", labelNamespace: "shop", labelRoute: name}, value: value}
		}
		return s
	}
	m := measurement{by: ByRoute, rows: map[key]*sums{}}
	m.add("infra/shared", series(map[string]float64{"web": 5, "gone": 7}), series(map[string]float64{"web": 8, "new": 2}))
	got := map[string]float64{}
	for k, row := range m.rows {
		got[k.name] = row.requests
	}
	if diff := cmp.Diff(map[string]float64{"HTTPRoute shop/web": 3, "HTTPRoute shop/new": 2}, got); diff != "" {
		t.Errorf("requests differ (-want +got):\n%s", diff)
	}
}

func TestRequestsAreExactWithReadingsAtDifferentTimes(t *testing.T) {
	start := time.Now()
	reading := func(value, seconds float64) connectorReading {
		s := scrape{at: start.Add(time.Duration(seconds * float64(time.Second))), routes: newMetrics(), listeners: newMetrics()}
		s.listeners.requests["web"] = counter{value: value}
		return connectorReading{gateway: "infra/shared", scrape: s}
	}
	before := Reading{connectors: map[types.UID]connectorReading{"a": reading(10, 0), "b": reading(20, 0)}}
	after := Reading{connectors: map[types.UID]connectorReading{"a": reading(15, 1), "b": reading(24, 2)}}
	want := []Row{{Gateway: "infra/shared", Requests: 9, RequestsPerSecond: 7, ErrorRatio: new(0.0)}}
	if diff := cmp.Diff(want, Compare(before, after, Options{By: ByGateway}).Rows); diff != "" {
		t.Errorf("rows differ (-want +got):\n%s", diff)
	}
}

// The wanted values come from Prometheus's histogram_quantile.
func TestQuantilesInterpolateLikePrometheus(t *testing.T) {
	inf := math.Inf(1)
	buckets := map[float64]float64{5: 10, 25: 60, 100: 90, inf: 100}
	for q, want := range map[float64]Quantile{
		0.05: {Milliseconds: 2.5}, 0.1: {Milliseconds: 5}, 0.5: {Milliseconds: 21}, 0.75: {Milliseconds: 62.5}, 0.9: {Milliseconds: 100},
		0.99: {Milliseconds: 100, Above: true},
	} {
		got := quantile(q, buckets)
		if got == nil || math.Abs(got.Milliseconds-want.Milliseconds) > 1e-9 || got.Above != want.Above {
			t.Errorf("quantile %v = %+v, want %+v", q, got, want)
		}
	}
	for name, buckets := range map[string]map[float64]float64{
		"no series":   nil,
		"no requests": {5: 0, inf: 0},
		"no bound":    {inf: 3},
		"no infinity": {5: 3, 25: 4},
	} {
		if got := quantile(0.5, buckets); got != nil {
			t.Errorf("%s: quantile = %+v, want none", name, got)
		}
	}
}
