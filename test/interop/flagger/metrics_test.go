package flagger

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/expr-lang/expr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// The metrics in the samples.
const (
	successRate = "success-rate"
	latency     = "latency"
)

// outcome is the result of a measurement in Argo Rollouts.
type outcome string

const (
	successful   outcome = "Successful"
	failed       outcome = "Failed"
	inconclusive outcome = "Inconclusive"
)

func advancesByMetrics(t *testing.T, b *bed) {
	c := b.newCanary(t, "measured", setup{sample: metricsSample})
	v := c.startVisitors(t)
	c.release(t)
	c.waitForStatus(t, "canaryWeight", "10")
	c.waitForStatus(t, "canaryWeight", "50")
	c.waitForPhase(t, "Succeeded")
	c.expectVersion(t, "2")
	v.check(t, "1", "2")
	c.expectRequests(t, "shop-.*", "2xx", c.visits.of("1", "2"))
	c.expectValue(t, totals(t, c.flaggerQuery(t, successRate)), 100)
	c.expectMeasurements(t, successful, successful)
}

func isRolledBackForErrors(t *testing.T, b *bed) {
	c := b.newCanary(t, "erroneous", setup{sample: metricsSample, analysis: map[string]any{"stepWeights": []any{int64(50)}}})
	v := c.startVisitors(t)
	c.release(t, corev1.EnvVar{Name: "FAILS", Value: "true"})
	c.waitForWarning(t, "Halt shop.erroneous advancement success rate ")
	c.waitForPhase(t, "Failed")
	c.expectVersion(t, "1")
	v.check(t, "1", "2", "status 500")
	c.expectRequests(t, "shop-primary", "2xx", c.visits.of("1"))
	c.expectRequests(t, "shop-canary", "2xx", c.visits.of("2"))
	c.expectRequests(t, "shop-canary", "5xx", c.visits.of("status 500"))
	c.expectValue(t, totals(t, c.flaggerQuery(t, successRate)), 100-100*c.visits.of("status 500")/c.visits.of("2", "status 500"))
	c.expectMeasurements(t, failed, successful)
}

func isRolledBackForLatency(t *testing.T, b *bed) {
	c := b.newCanary(t, "slow", setup{sample: metricsSample, analysis: map[string]any{"stepWeights": []any{int64(50)}}})
	v := c.startVisitors(t)
	c.release(t, corev1.EnvVar{Name: "DELAY", Value: "1100ms"})
	c.waitForWarning(t, "Halt shop.slow advancement latency ")
	c.waitForPhase(t, "Failed")
	c.expectVersion(t, "1")
	v.check(t, "1", "2")
	// All responses are in the bucket from 1000 to 2500 ms, in which Prometheus interpolates.
	c.expectValue(t, totals(t, c.flaggerQuery(t, latency)), 2485)
	c.expectMeasurements(t, successful, failed)
}

func isRolledBackWithoutRequests(t *testing.T, b *bed) {
	c := b.newCanary(t, "unvisited", setup{sample: metricsSample, analysis: map[string]any{"stepWeights": []any{int64(50)}}})
	c.release(t)
	c.waitForWarning(t, "Halt advancement no values found for custom metric: success rate")
	c.waitForPhase(t, "Failed")
	c.expectMeasurements(t, inconclusive, inconclusive)
}

// expectRequests waits until Envoy has counted the responses of the Services with a class
// of statuses.
func (c *canary) expectRequests(t *testing.T, services, code string, want float64) {
	t.Helper()
	c.expectValue(t, fmt.Sprintf(`sum(envoy_tunnel_gateway_requests_total{route_kind="HTTPRoute", route_namespace=%q, route_name="shop", rule="0", hostname=%q, backend=~"%s/%s:8080", code=%q})`,
		c.namespace, c.host, c.namespace, services, code), want)
}

// flaggerQuery returns a MetricTemplate's query for the canary.
func (c *canary) flaggerQuery(t *testing.T, name string) string {
	t.Helper()
	template := &unstructured.Unstructured{}
	template.SetAPIVersion("flagger.app/v1beta1")
	template.SetKind("MetricTemplate")
	must(t, c.kube.Get(t.Context(), client.ObjectKey{Namespace: "platform", Name: name}, template))
	query, _, err := unstructured.NestedString(template.Object, "spec", "query")
	must(t, err)
	return strings.NewReplacer("{{ namespace }}", c.namespace, "{{ service }}", "shop", "{{ interval }}", "10s").Replace(query)
}

// analysisTemplate has the fields of the AnalysisTemplate that the tests use.
type analysisTemplate struct {
	Spec struct {
		Metrics []struct {
			Name, SuccessCondition, FailureCondition string
			Provider                                 struct{ Prometheus struct{ Query string } }
		}
	}
}

// expectMeasurements checks the outcomes of the AnalysisTemplate's metrics, over the last
// minutes.
func (c *canary) expectMeasurements(t *testing.T, wantSuccessRate, wantLatency outcome) {
	t.Helper()
	template := analysisTemplate{}
	must(t, yaml.Unmarshal([]byte(readSample(t, "canary/30-analysis-template.yaml")), &template))
	want := map[string]outcome{successRate: wantSuccessRate, latency: wantLatency}
	if len(template.Spec.Metrics) != len(want) {
		t.Fatalf("the AnalysisTemplate has %d metrics, want %d", len(template.Spec.Metrics), len(want))
	}
	for _, metric := range template.Spec.Metrics {
		query := strings.NewReplacer("{{args.namespace}}", c.namespace, "{{args.service}}", "shop-canary").Replace(metric.Provider.Prometheus.Query)
		values, err := c.query(t.Context(), query)
		must(t, err)
		if got := measure(t, metric.SuccessCondition, metric.FailureCondition, values); got != want[metric.Name] {
			t.Errorf("%s: the measurement of %s is %s, want %s: %v", c.namespace, metric.Name, got, want[metric.Name], values)
		}
	}
}

// measure evaluates the conditions with the same library as Argo Rollouts. A measurement
// that neither succeeds nor fails is inconclusive.
func measure(t *testing.T, success, failure string, result []float64) outcome {
	t.Helper()
	holds := func(condition string) bool {
		value, err := expr.Eval(condition, map[string]any{"result": result})
		must(t, err)
		return value.(bool)
	}
	switch {
	case holds(failure):
		return failed
	case holds(success):
		return successful
	default:
		return inconclusive
	}
}

// knowsTheLoad checks the query in the ScaledObject for KEDA, after all visitors have
// stopped.
func knowsTheLoad(t *testing.T, b *bed) {
	object := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(readSample(t, "autoscaling/10-scaledobject.yaml")), &object.Object))
	target, _, err := unstructured.NestedString(object.Object, "spec", "scaleTargetRef", "name")
	must(t, err)
	deployment := &unstructured.Unstructured{}
	deployment.SetAPIVersion("apps/v1")
	deployment.SetKind("Deployment")
	must(t, b.kube.Get(t.Context(), client.ObjectKey{Namespace: object.GetNamespace(), Name: target}, deployment))
	triggers, _, err := unstructured.NestedSlice(object.Object, "spec", "triggers")
	must(t, err)
	query, _, err := unstructured.NestedString(triggers[0].(map[string]any), "metadata", "query")
	must(t, err)
	total := totals(t, query)
	b.awaitScrape(t)
	before, err := b.query(t.Context(), total)
	must(t, err)
	if len(before) != 1 || before[0] == 0 {
		t.Fatalf("the connectors have served %v requests", before)
	}
	c := &canary{bed: b, namespace: "advancing", host: "advancing.example.com", gateway: "envoy"}
	c.expectVersion(t, "2")
	b.expectValue(t, total, before[0]+c.visits.of("2"))
	rate, err := b.query(t.Context(), query)
	must(t, err)
	if len(rate) != 1 || !(rate[0] > 0) || math.IsInf(rate[0], 0) {
		t.Errorf("the rate of requests is %v, want a number above 0", rate)
	}
}
