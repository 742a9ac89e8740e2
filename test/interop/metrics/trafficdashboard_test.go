package metrics

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// trafficVariables replaces the dashboard's variables, like Grafana if all are selected.
// rangeMinutes is the range of time that the dashboard shows.
var trafficVariables = strings.NewReplacer("$__rate_interval", "4m", "$__range", "10m",
	"$gateway_namespace", ".*", "$gateway", ".*", "$route_namespace", ".*", "$route", ".*")

const rangeMinutes = 10

// answer is the expected result of a query: exact values by the values of the labels, or,
// if least is set, the smallest possible ones. The duration of a request has no upper
// bound on a busy machine.
type answer struct {
	values map[string]float64
	least  bool
}

// totals are the expected results of the queries that need no metrics by route, by the
// panel's title and the query's name.
func (s *traffic) totals() map[string]answer {
	one := func(value float64) answer { return answer{values: map[string]float64{"": value}} }
	least := func(value float64) answer { return answer{values: map[string]float64{"": value}, least: true} }
	rate := func(matches func(visit) bool) float64 { return s.sum(times(matches))[""] / 60 }
	all, completed := rate(every), rate(func(v visit) bool { return v.flags != "DC" })
	class := func(code string) answer { return one(rate(func(v visit) bool { return v.code == code })) }
	flag := func(flags string) answer { return one(rate(func(v visit) bool { return v.flags == flags })) }
	return map[string]answer{
		"Envoys A": one(1), "Requests A": one(all), "In flight A": one(streams),
		"Responses with 5xx A":  one(rate(func(v visit) bool { return v.code == "5xx" }) / completed),
		"Requests by Gateway A": {values: map[string]float64{"platform shared": all}},
		"Responses by class A":  class("1xx"), "Responses by class B": class("2xx"), "Responses by class C": class("3xx"),
		"Responses by class D": class("4xx"), "Responses by class E": class("5xx"),
		"Duration of requests A": least(0), "Duration of requests B": least(10), // the timeout is one in fifteen
		"Bytes A": least(1), "Bytes B": least(1),
		"Requests without a backend A": flag("NR"), "Requests without a backend B": flag("NC"),
		"Requests without a backend C": one(rate(func(v visit) bool { return v.path == "/missing" || v.path == "/old" })),
		"Requests ended early A":       one(rate(func(v visit) bool { return v.flags == "DC" || v.broken() })), "Requests ended early B": one(rate(visit.broken)),
		"Dropped lines A": {values: map[string]float64{"platform shared": all}},
	}
}

// fails reports whether a visit counts as an error.
func (v visit) fails() bool { return v.code == "5xx" || v.flags == "UPE" || v.status == "Unavailable" }

// byRoutes are the expected results of the other queries.
func (s *traffic) byRoutes() map[string]answer {
	byRoute := []int{kind, namespace, route}
	sum := func(factor float64, value func(visit) int, by ...int) answer {
		return answer{values: scale(s.sum(value, by...), factor)}
	}
	rate := func(matches func(visit) bool, by ...int) answer { return sum(1.0/60, times(matches), by...) }
	bytes := func(v visit) int { return len(v.body) + v.received }
	answers := map[string]answer{
		"Requests by hostname A": rate(every, hostname), "Requests by route A": rate(every, byRoute...), "Requests by backend A": rate(every, backend),
		"Responses by code A":  s.perSecond(every, func(v visit) string { return v.code }),
		"In flight by route A": {values: map[string]float64{"HTTPRoute blog web": streams}},
		"Bytes by route A":     sum(1.0/60, func(v visit) int { return len(v.body) }, byRoute...),
		"Bytes by route B":     sum(1.0/60, func(v visit) int { return v.received }, byRoute...),
		"Errors by route A":    {values: divide(s.sum(times(visit.fails), byRoute...), s.sum(times(every), byRoute...))},
		"Errors by backend A":  rate(visit.fails, backend),
		"Response flags A":     s.perSecond(func(v visit) bool { return v.flags != "" }, func(v visit) string { return v.flags }),
		"gRPC statuses A":      s.perSecond(func(v visit) bool { return v.status != "" }, func(v visit) string { return v.status }),
		"Retries by route A":   sum(1.0/60, func(v visit) int { return v.retries }, byRoute...),
		"Use by namespace A":   sum(rangeMinutes, times(every), namespace), "Use by namespace B": sum(rangeMinutes, times(visit.fails), namespace),
		"Use by namespace C": sum(rangeMinutes, bytes, namespace), "Use by namespace D": s.durations(rangeMinutes, namespace),
		"Requests by namespace A": rate(every, namespace), "Bytes by namespace A": sum(1.0/60, bytes, namespace),
		"Time by namespace A": s.durations(1.0/60, namespace),
	}
	for i, flags := range []string{"UT", "UH", "UC URX,UF UPE", "UO", "NR", "NC", "DC"} {
		answers["Errors by cause "+string('A'+rune(i))] = rate(func(v visit) bool { return v.flags != "" && v.code != "1xx" && strings.Contains(flags, v.flags) })
	}
	answers["Errors by cause H"] = rate(func(v visit) bool { return v.code == "5xx" && v.flags == "" })
	answers["Errors by cause I"] = rate(func(v visit) bool { return v.status == "Unavailable" })
	maps.Copy(answers, s.latencies(byRoute))
	return answers
}

// latencies are the least values in the panels for latency.
func (s *traffic) latencies(byRoute []int) map[string]answer {
	return map[string]answer{
		"Duration of requests by route, 50 % A":     s.slowest(0.5, every, byRoute...),
		"Duration of requests by route, 99 % A":     s.slowest(0.99, every, byRoute...),
		"Duration of requests by hostname, 99 % A":  s.slowest(0.99, every, hostname),
		"Time to the first byte by route, 99 % A":   s.slowest(0.99, visit.answered, byRoute...),
		"Time to the first byte by backend, 50 % A": s.slowest(0.5, visit.answered, backend),
		"Time to the first byte by backend, 99 % A": s.slowest(0.99, visit.answered, backend),
	}
}

// slowest returns the least values of a quantile. A visit to the cart takes at least 30 ms,
// which is in the bucket from 25 to 100 ms.
func (s *traffic) slowest(quantile float64, matches func(visit) bool, by ...int) answer {
	values := divide(s.sum(times(visit.slow), by...), s.sum(times(matches), by...))
	for key, share := range values {
		values[key] = 0
		if share > 1-quantile {
			values[key] = 25
		}
	}
	return answer{values: values, least: true}
}

// slow reports whether the backend waits.
func (v visit) slow() bool { return v.path == "/cart" }

// broken reports whether the backend ends the response after its headers.
func (v visit) broken() bool { return v.flags == "UPE" || v.code == "1xx" }

// answered reports whether Envoy gets a response from a backend.
func (v visit) answered() bool {
	return (v.flags == "" || v.broken()) && v.path != "/old" && v.path != "/missing"
}

// durations are the least durations of all requests together, in seconds.
func (s *traffic) durations(factor float64, by ...int) answer {
	return answer{values: scale(s.sum(times(visit.slow), by...), factor*cartDelay.Seconds()), least: true}
}

// every matches every visit.
func every(visit) bool { return true }

// times counts the visits that match.
func times(matches func(visit) bool) func(visit) int {
	return func(v visit) int {
		if matches(v) {
			return 1
		}
		return 0
	}
}

func scale(values map[string]float64, factor float64) map[string]float64 {
	for key := range values {
		values[key] *= factor
	}
	return values
}

func divide(values, by map[string]float64) map[string]float64 {
	ratios := map[string]float64{}
	for key, divisor := range by {
		if divisor > 0 {
			ratios[key] = values[key] / divisor
		}
	}
	return ratios
}

// perSecond returns the rates of the visits that match, by a label.
func (s *traffic) perSecond(matches func(visit) bool, label func(visit) string) answer {
	rates := map[string]float64{}
	for _, v := range s.visits {
		if matches(v) {
			rates[label(v)] += float64(v.times) / 60
		}
	}
	return answer{values: rates}
}

// resultLabels are the labels in the results of queries.
var resultLabels = []string{"gateway_namespace", "gateway_name", "route_kind", "route_namespace", "route_name", "hostname", "backend", "code", "flags", "grpc_status"}

// resultKey joins the values of the labels.
func resultKey(metric labels.Labels) string {
	var values []string
	for _, name := range resultLabels {
		values = append(values, metric.Get(name))
	}
	return strings.Join(strings.Fields(strings.Join(values, " ")), " ")
}

// check compares the result of a query with the expected one. A series without requests
// does not matter.
func (a answer) check(t *testing.T, name string, result promql.Vector) {
	t.Helper()
	got := map[string]float64{}
	for _, sample := range result {
		if !math.IsNaN(sample.F) {
			got[resultKey(sample.Metric)] = sample.F
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := a.values[key]; !ok && got[key] != 0 {
			t.Errorf("%s: unexpected %q: %v", name, key, got[key])
		}
	}
	for key, want := range a.values {
		value, ok := got[key]
		wrong := math.Abs(value-want) > 1e-9
		if a.least {
			wrong = !ok || value < want
		}
		if wrong {
			t.Errorf("%s: %q is %v, want %v (at least: %v)", name, key, value, want, a.least)
		}
	}
}

// TestTrafficDashboardShowsTheTraffic compares every panel with the requests that visitors
// sent to a real Envoy.
func TestTrafficDashboardShowsTheTraffic(t *testing.T) {
	for name, by := range map[string][]v1alpha1.MetricsDimension{
		"by Gateway":           {v1alpha1.MetricsByGateway},
		"by route":             {v1alpha1.MetricsByRoute},
		"by route and backend": {v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend},
	} {
		t.Run(name, func(t *testing.T) {
			s := startTraffic(t, by...)
			s.run(rangeMinutes + 2)
			want := s.totals()
			if s.byRoute {
				maps.Copy(want, s.byRoutes())
			}
			s.checkPanels(t, want)
			s.checkVariables(t)
		})
	}
}

// checkPanels compares the results of all panels. A panel without an expected result is
// empty.
func (s *traffic) checkPanels(t *testing.T, want map[string]answer) {
	t.Helper()
	for _, p := range loadDashboard(t, trafficDashboardFile).Panels {
		for _, target := range p.Targets {
			name := p.Title + " " + target.RefID
			expression := trafficVariables.Replace(target.Expr)
			if strings.Contains(expression, "$") {
				t.Fatalf("%s: unknown variable in %s", name, expression)
			}
			result := s.query(expression)
			if expected, ok := want[name]; ok {
				if len(result) == 0 {
					t.Errorf("%s has no data: %s", name, expression)
				}
				expected.check(t, name, result)
				delete(want, name)
			} else if len(result) > 0 || s.byRoute {
				t.Errorf("%s: unexpected result %v", name, result)
			}
		}
	}
	for name := range want {
		t.Errorf("no panel shows %s", name)
	}
}

// checkVariables evaluates the definitions of the variables.
func (s *traffic) checkVariables(t *testing.T) {
	t.Helper()
	want := map[string][]string{"gateway_namespace": {sharedGateway.Namespace}, "gateway": {sharedGateway.Name}, "route_namespace": nil, "route": nil}
	if s.byRoute {
		want["route_namespace"] = slices.Sorted(maps.Keys(s.sum(times(every), namespace)))
		want["route"] = slices.Sorted(maps.Keys(s.sum(times(every), route)))
	}
	for _, variable := range loadDashboard(t, trafficDashboardFile).Templating.List {
		if variable.Type != "query" {
			continue
		}
		found := labelValues.FindStringSubmatch(variable.Definition)
		if found == nil {
			t.Fatalf("variable %s: %q does not use label_values", variable.Name, variable.Definition)
		}
		values := map[string]bool{}
		for _, sample := range s.query(trafficVariables.Replace(found[1])) {
			values[sample.Metric.Get(found[2])] = true
		}
		if got := slices.Sorted(maps.Keys(values)); !slices.Equal(got, want[variable.Name]) {
			t.Errorf("variable %s offers %q, want %q", variable.Name, got, want[variable.Name])
		}
		delete(want, variable.Name)
	}
	for name := range want {
		t.Errorf("the dashboard has no variable %s", name)
	}
}
