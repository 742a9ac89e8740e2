package metrics

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
)

// The Grafana dashboards for the controller and for the traffic.
const (
	dashboardFile        = "../../../charts/tunnel-gateway/files/dashboard.json"
	trafficDashboardFile = "../../../charts/tunnel-gateway/files/traffic-dashboard.json"
)

// dashboard contains the Grafana dashboard fields that the tests check.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name, Type string
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID      int `json:"id"`
	Type    string
	Title   string
	GridPos struct{ H, W, X, Y int } `json:"gridPos"`
	Targets []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

func loadDashboard(t *testing.T, file string) dashboard {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// dashboardVariables replaces the dashboard's variables with values, like Grafana.
var dashboardVariables = strings.NewReplacer("$__rate_interval", "4m", "$namespace", ".*", "$gateway", ".*")

// TestDashboardsHaveTheirOwnPlaces checks the dashboards' layouts, and that both can be in
// one Grafana.
func TestDashboardsHaveTheirOwnPlaces(t *testing.T) {
	controller, traffic := loadDashboard(t, dashboardFile), loadDashboard(t, trafficDashboardFile)
	if controller.UID == traffic.UID || controller.Title == traffic.Title {
		t.Errorf("both dashboards have the UID %q or the title %q", controller.UID, controller.Title)
	}
	checkLayout(t, controller)
	checkLayout(t, traffic)
}

// checkLayout checks that panels have unique IDs and do not overlap.
func checkLayout(t *testing.T, d dashboard) {
	t.Helper()
	if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
		t.Fatalf("uid %q, title %q, %d panels", d.UID, d.Title, len(d.Panels))
	}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" {
			t.Errorf("the ID %d of panel %q is missing or not unique, or the panel has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		for _, cell := range p.cells() {
			if other := cells[cell]; other != "" || cell[0] > 23 {
				t.Fatalf("panel %q overlaps panel %q or exceeds the width of the dashboard", p.Title, other)
			}
			cells[cell] = p.Title
		}
	}
}

// cells returns the grid cells that the panel covers.
func (p panel) cells() [][2]int {
	var cells [][2]int
	for x := range p.GridPos.W {
		for y := range p.GridPos.H {
			cells = append(cells, [2]int{p.GridPos.X + x, p.GridPos.Y + y})
		}
	}
	return cells
}

// TestPanelsHaveNamedQueries checks that each panel has queries with unique names.
// Only rows have no queries.
func TestPanelsHaveNamedQueries(t *testing.T) {
	for _, p := range append(loadDashboard(t, dashboardFile).Panels, loadDashboard(t, trafficDashboardFile).Panels...) {
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.Expr == "" || refs[target.RefID] {
				t.Errorf("panel %q: query %s is empty or its name is not unique", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %q is a %s with %d queries", p.Title, p.Type, len(p.Targets))
		}
	}
}

// TestDashboardShowsEveryMetric records a value for each metric and checks that each
// panel has data.
func TestDashboardShowsEveryMetric(t *testing.T) {
	s := newServer(t)
	s.advance(20, s.recordAll)
	used := map[string]bool{}
	for _, p := range loadDashboard(t, dashboardFile).Panels {
		for _, target := range p.Targets {
			expression := dashboardVariables.Replace(target.Expr)
			if strings.Contains(expression, "$") {
				t.Errorf("panel %q: unknown variable in %s", p.Title, expression)
				continue
			}
			checkNames(t, expression)
			if !hasFiniteValue(s.query(expression)) {
				t.Errorf("panel %q has no data: %s", p.Title, expression)
			}
			for _, m := range metrics.All {
				used[m.Name] = used[m.Name] || strings.Contains(expression, m.Name)
			}
		}
	}
	for _, m := range metrics.All {
		if !used[m.Name] {
			t.Errorf("no panel shows %s", m.Name)
		}
	}
}

// TestDashboardDrawsNoValueTwiceAfterALeaderChange records the same values in two pods.
// Prometheus still returns the previous leader's metrics for a few minutes.
func TestDashboardDrawsNoValueTwiceAfterALeaderChange(t *testing.T) {
	s := newServer(t)
	s.advance(20, s.recordAll)
	before := s.currentValues(t)
	s.advance(1, func() {
		s.recordAll()
		s.Metrics = s.secondPod
		s.recordAll()
	})
	if after := s.currentValues(t); !maps.EqualFunc(before, after, slices.Equal) {
		t.Errorf("the values differ: before the leader change %v, after it %v", before, after)
	}
}

// currentValues returns the data in the panels that show the current state, by panel and
// query.
func (s *prometheusServer) currentValues(t *testing.T) map[string][]string {
	t.Helper()
	values := map[string][]string{}
	for _, p := range loadDashboard(t, dashboardFile).Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "rate(") || strings.Contains(target.Expr, "increase(") {
				continue
			}
			for _, sample := range s.query(dashboardVariables.Replace(target.Expr)) {
				values[p.Title+" "+target.RefID] = append(values[p.Title+" "+target.RefID], fmt.Sprint(sample.Metric, sample.F))
			}
		}
	}
	return values
}

// TestDashboardIsEmptyWithoutScrapes checks that a stopped controller does not look
// like a healthy one.
func TestDashboardIsEmptyWithoutScrapes(t *testing.T) {
	s := newServer(t)
	s.advance(20, s.recordAll)
	s.now = s.now.Add(20 * time.Minute)
	for name, values := range s.currentValues(t) {
		t.Errorf("%s shows %v, want no data", name, values)
	}
}

// TestDashboardShowsTheLatencyOfASinglePush checks the panels for the time from a
// change to its push.
func TestDashboardShowsTheLatencyOfASinglePush(t *testing.T) {
	s := newServer(t)
	s.advance(5, func() {})
	s.ObserveChangeToPush(time.Second)
	s.advance(30, func() {})
	for _, p := range loadDashboard(t, dashboardFile).Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "change_to_push") && !hasFiniteValue(s.query(dashboardVariables.Replace(target.Expr))) {
				t.Errorf("panel %q has no data: %s", p.Title, target.Expr)
			}
		}
	}
}

// labelValues matches a variable that is defined with Grafana's label_values.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// TestDashboardVariablesOfferTheGateways evaluates the variables' definitions.
func TestDashboardVariablesOfferTheGateways(t *testing.T) {
	s := newServer(t)
	s.advance(2, s.recordAll)
	want := map[string]string{"namespace": sharedGateway.Namespace, "gateway": sharedGateway.Name}
	for _, variable := range loadDashboard(t, dashboardFile).Templating.List {
		if variable.Type != "query" {
			continue
		}
		found := labelValues.FindStringSubmatch(variable.Definition)
		if found == nil {
			t.Errorf("variable %s: %q does not use label_values", variable.Name, variable.Definition)
			continue
		}
		expression := dashboardVariables.Replace(found[1])
		checkNames(t, expression)
		vector := s.query(expression)
		if len(vector) != 1 || vector[0].Metric.Get(found[2]) != want[variable.Name] {
			t.Errorf("variable %s offers %v, want %s", variable.Name, vector, want[variable.Name])
		}
		delete(want, variable.Name)
	}
	if len(want) > 0 {
		t.Errorf("the dashboard has no variables for %v", want)
	}
}
