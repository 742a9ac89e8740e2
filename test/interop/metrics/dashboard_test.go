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

const dashboardFile = "../../../charts/tunnel-gateway/files/dashboard.json"

// dashboard is what Grafana reads of a dashboard, as far as it matters here.
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

func load(t *testing.T) dashboard {
	t.Helper()
	data, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// inserted is what Grafana puts in place of the dashboard's variables.
var inserted = strings.NewReplacer("$__rate_interval", "4m", "$namespace", ".*", "$gateway", ".*")

// Every panel has a place and an id of its own.
func TestPanels(t *testing.T) {
	d := load(t)
	if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
		t.Fatalf("uid %q, title %q, %d panels", d.UID, d.Title, len(d.Panels))
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" {
			t.Errorf("panel %q has the id %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, cell := range p.cells() {
			if other := taken[cell]; other != "" || cell[0] > 23 {
				t.Fatalf("panel %q lies over %q, or outside", p.Title, other)
			}
			taken[cell] = p.Title
		}
	}
}

// cells are those of the grid that the panel covers.
func (p panel) cells() [][2]int {
	var cells [][2]int
	for x := range p.GridPos.W {
		for y := range p.GridPos.H {
			cells = append(cells, [2]int{p.GridPos.X + x, p.GridPos.Y + y})
		}
	}
	return cells
}

// Every panel has queries that can be told apart, and only a row has none.
func TestPanelsHaveQueries(t *testing.T) {
	for _, p := range load(t).Panels {
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.Expr == "" || refs[target.RefID] {
				t.Errorf("panel %q: query %s", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %q is a %s with %d queries", p.Title, p.Type, len(p.Targets))
		}
	}
}

// What is asked for is exported, and where something happens something is drawn.
func TestDashboardQueries(t *testing.T) {
	s := newServer(t)
	s.minutes(20, s.everything)
	used := map[string]bool{}
	for _, p := range load(t).Panels {
		for _, target := range p.Targets {
			expression := inserted.Replace(target.Expr)
			if strings.Contains(expression, "$") {
				t.Errorf("panel %q: a variable is left in %s", p.Title, expression)
				continue
			}
			checkNames(t, expression)
			if !finite(s.query(expression)) {
				t.Errorf("panel %q draws nothing: %s", p.Title, expression)
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

// After another replica has taken over, what the first one exported stays for a
// while. Nothing is drawn twice then.
func TestHandOver(t *testing.T) {
	s := newServer(t)
	s.minutes(20, s.everything)
	before := s.gauges(t)
	s.minutes(1, func() {
		s.everything()
		s.Metrics = s.second
		s.everything()
	})
	if after := s.gauges(t); !maps.EqualFunc(before, after, slices.Equal) {
		t.Errorf("before: %v, after: %v", before, after)
	}
}

// gauges are what the panels draw that show how things stand.
func (s *prometheusServer) gauges(t *testing.T) map[string][]string {
	t.Helper()
	drawn := map[string][]string{}
	for _, p := range load(t).Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "rate(") || strings.Contains(target.Expr, "increase(") {
				continue
			}
			for _, sample := range s.query(inserted.Replace(target.Expr)) {
				drawn[p.Title+" "+target.RefID] = append(drawn[p.Title+" "+target.RefID], fmt.Sprint(sample.Metric, sample.F))
			}
		}
	}
	return drawn
}

// A controller that is away is not taken for one whose Gateways are all well.
func TestNothingIsScraped(t *testing.T) {
	s := newServer(t)
	s.minutes(20, s.everything)
	s.now = s.now.Add(20 * time.Minute)
	for name, drawn := range s.gauges(t) {
		t.Errorf("%s draws %v", name, drawn)
	}
}

// The time from a change to its push is drawn when there are few.
func TestFewPushes(t *testing.T) {
	s := newServer(t)
	s.minutes(5, func() {})
	s.ObserveChangeToPush(time.Second)
	s.minutes(30, func() {})
	for _, p := range load(t).Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "change_to_push") && !finite(s.query(inserted.Replace(target.Expr))) {
				t.Errorf("panel %q draws nothing: %s", p.Title, target.Expr)
			}
		}
	}
}

// labelValues is Grafana's own function for what a variable can be.
var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// The variables offer the Gateways that there are.
func TestVariables(t *testing.T) {
	s := newServer(t)
	s.minutes(2, s.everything)
	want := map[string]string{"namespace": shared.Namespace, "gateway": shared.Name}
	for _, variable := range load(t).Templating.List {
		if variable.Type != "query" {
			continue
		}
		found := labelValues.FindStringSubmatch(variable.Definition)
		if found == nil {
			t.Errorf("%s: %q", variable.Name, variable.Definition)
			continue
		}
		expression := inserted.Replace(found[1])
		checkNames(t, expression)
		vector := s.query(expression)
		if len(vector) != 1 || vector[0].Metric.Get(found[2]) != want[variable.Name] {
			t.Errorf("%s offers %v", variable.Name, vector)
		}
		delete(want, variable.Name)
	}
	if len(want) > 0 {
		t.Errorf("without variables for %v", want)
	}
}
