package metrics

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	alertsFile = "../../../charts/tunnel-gateway/files/alerts.yaml"
	runbook    = "../../../docs/runbook.md"
	runbookURL = "https://github.com/tunnel-gateway/tunnel-gateway/blob/main/docs/runbook.md#"
)

// alerts are those of the file, which Prometheus reads with its templates.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(alertsFile, false, model.UTF8Validation, queries, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if _, twice := all[rule.Alert]; twice || rule.Alert == "" {
				t.Errorf("alert %q is there twice, or has no name", rule.Alert)
			}
			all[rule.Alert] = rule
		}
	}
	return all
}

// Whoever is alerted reads what it is about and where to look.
func TestAlertsAreExplained(t *testing.T) {
	page, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (\w+)$`).FindAllStringSubmatch(string(page), -1) {
		sections[strings.ToLower(heading[1])] = true
	}
	for name, rule := range alerts(t) {
		checkNames(t, rule.Expr)
		if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s is not explained", name)
		}
		anchor, ok := strings.CutPrefix(rule.Annotations["runbook_url"], runbookURL)
		if !ok || anchor != strings.ToLower(name) || !sections[anchor] {
			t.Errorf("%s leads to %q, and the runbook has no such section", name, rule.Annotations["runbook_url"])
		}
		delete(sections, anchor)
	}
	delete(sections, "runbook")
	for section := range sections {
		t.Errorf("the runbook has a section %q without an alert", section)
	}
}

// The reasons in the tables of the runbook are those of the conditions.
func TestRunbookNamesReasons(t *testing.T) {
	page, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, entry := range tunnel.Catalogue {
		known[string(entry.Reason)] = true
	}
	tables := 0
	for _, found := range regexp.MustCompile("(?ms)^\\| (?:`reason`|Reason) \\|.*?^$").FindAllString(string(page), -1) {
		tables++
		for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(found, -1)[1:] {
			for _, reason := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(row[1], -1) {
				if !known[reason[1]] {
					t.Errorf("the runbook explains the reason %s, which does not exist", reason[1])
				}
			}
		}
	}
	if tables != 2 {
		t.Errorf("the runbook has %d tables of reasons, want 2", tables)
	}
}

// fires tells whether the alert's expression has held for its time: for so many
// scrapes in a row.
func (s *prometheusServer) fires(rule rulefmt.Rule) bool {
	s.t.Helper()
	now := s.now
	defer func() { s.now = now }()
	for age := time.Duration(0); age <= time.Duration(rule.For); age += interval {
		s.now = now.Add(-age)
		if len(s.query(rule.Expr)) == 0 {
			return false
		}
	}
	return true
}

// scenes are what happens every minute, and which alerts that gives.
var scenes = map[string]struct {
	happens func(*prometheusServer)
	want    []string
}{
	"all is well": {happens: func(s *prometheusServer) {
		s.well()
		s.RecordPush(shared, 100)
		s.SetOldestChange(shared, s.now.Add(-time.Second))
		s.call(nil)
	}},
	"an edit that is put right": {happens: func(s *prometheusServer) {
		s.well()
		if s.now.Minute() == 20 {
			s.RecordDriftRepair(shared)
		}
	}},
	"somebody else writes every quarter of an hour": {want: []string{"TunnelGatewayDriftRepairs"}, happens: func(s *prometheusServer) {
		s.well()
		if s.now.Minute()%15 == 0 {
			s.RecordDriftRepair(shared)
		}
	}},
	"paused": {happens: func(s *prometheusServer) {
		s.SetGateway(shared, metrics.Gateway{Paused: true, Connectors: &metrics.Connectors{}})
	}},
	"drift reads wait for their turn": {happens: func(s *prometheusServer) {
		s.well()
		s.callFor(provider.PriorityDrift, &provider.RateLimitedError{RetryAfter: time.Minute, Budget: true})
	}},
	"an error now and then": {happens: func(s *prometheusServer) {
		s.well()
		if s.now.Minute()%10 == 0 {
			s.RecordError(shared, tunnel.ReasonUnavailable)
		}
	}},
	"no connectors are wanted": {happens: func(s *prometheusServer) {
		s.SetGateway(shared, metrics.Gateway{Programmed: true, Connectors: &metrics.Connectors{}})
	}},
	"the controller runs no connectors": {happens: func(s *prometheusServer) {
		s.SetGateway(shared, metrics.Gateway{Programmed: true})
	}},
	"not programmed": {want: []string{"TunnelGatewayNotProgrammed"}, happens: func(s *prometheusServer) {
		s.SetGateway(shared, metrics.Gateway{})
	}},
	"changes wait five minutes each": {happens: func(s *prometheusServer) {
		s.well()
		s.call(&provider.RateLimitedError{RetryAfter: time.Minute})
		s.SetOldestChange(shared, s.now.Add(-time.Duration(s.now.Minute()%5)*time.Minute))
	}},
	"a change waits": {want: []string{"TunnelGatewayChangesLate"}, happens: func(s *prometheusServer) {
		s.well()
		s.SetOldestChange(shared, begin.Add(10*time.Minute))
	}},
	"a change waits for the API's limit": {want: []string{"TunnelGatewayChangesLate", "TunnelGatewayRateBudgetExhausted"}, happens: func(s *prometheusServer) {
		s.well()
		s.call(&provider.RateLimitedError{RetryAfter: time.Minute})
		s.SetOldestChange(shared, begin.Add(10*time.Minute))
	}},
	"a change waits for the budget": {want: []string{"TunnelGatewayChangesLate", "TunnelGatewayRateBudgetExhausted"}, happens: func(s *prometheusServer) {
		s.well()
		s.call(&provider.RateLimitedError{RetryAfter: time.Minute, Budget: true})
		s.SetOldestChange(shared, begin.Add(10*time.Minute))
	}},
	"a change waited": {happens: func(s *prometheusServer) {
		s.well()
		if s.SetOldestChange(shared, begin); s.now.Minute() > 30 {
			s.SetOldestChange(shared, time.Time{})
		}
	}},
	"external changes have stopped the controller": {want: []string{"TunnelGatewayDriftFight", "TunnelGatewayNotProgrammed"}, happens: func(s *prometheusServer) {
		s.SetGateway(shared, metrics.Gateway{})
		if s.now.Minute() == 40 {
			s.RecordDriftContested(shared)
		}
	}},
	"connectors are down": {want: []string{"TunnelGatewayConnectorsDown"}, happens: func(s *prometheusServer) {
		s.SetGateway(shared, metrics.Gateway{Programmed: true, Connectors: &metrics.Connectors{Desired: 2}})
	}},
	"no replica leads": {want: []string{"TunnelGatewayDown"}, happens: func(s *prometheusServer) {
		s.well()
		s.replicas[ours[0]] = 0
	}},
	"the Gateway is gone for two hours": {want: []string{"TunnelGatewayTunnelNotDeleted"}, happens: func(s *prometheusServer) {
		s.SetGatewayMissing(shared, begin.Add(-2*time.Hour))
	}},
	"the Gateway is gone for half an hour": {happens: func(s *prometheusServer) {
		s.SetGatewayMissing(shared, begin.Add(20*time.Minute))
	}},
	"the Gateway was gone": {happens: func(s *prometheusServer) {
		s.SetGatewayMissing(shared, begin.Add(-2*time.Hour))
		if s.now.Minute() > 30 {
			s.SetGatewayMissing(shared, time.Time{}) // it is back, or its tunnel is retained
		}
	}},
	"tunnels without a Tunnel object": {want: []string{"TunnelGatewayOrphanedTunnels"}, happens: func(s *prometheusServer) {
		s.well()
		s.SetAccount("west", 10, 2)
	}},
	"900 tunnels": {happens: func(s *prometheusServer) {
		s.well()
		s.SetAccount("west", 900, 0)
	}},
	"901 tunnels": {want: []string{"TunnelGatewayAccountFull"}, happens: func(s *prometheusServer) {
		s.well()
		s.SetAccount("west", 901, 0)
	}},
	"errors every minute": {want: []string{"TunnelGatewayReconcileErrors"}, happens: func(s *prometheusServer) {
		s.well()
		s.RecordError(shared, tunnel.ReasonUnauthorized)
	}},
}

func (s *prometheusServer) well() {
	s.SetGateway(shared, metrics.Gateway{Programmed: true, Connectors: &metrics.Connectors{Ready: true, Desired: 2, Available: 1}})
}

func TestAlertsFire(t *testing.T) {
	all := alerts(t)
	seen := map[string]bool{}
	for name, scene := range scenes {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.minutes(5, s.well)
			s.minutes(45, func() { scene.happens(s) })
			want := map[string]bool{}
			for _, alert := range scene.want {
				want[alert], seen[alert] = true, true
			}
			for alert, rule := range all {
				if got := s.fires(rule); got != want[alert] {
					t.Errorf("%s fires: %v", alert, got)
				}
			}
		})
	}
	for alert := range all {
		if !seen[alert] {
			t.Errorf("no scene fires %s", alert)
		}
	}
}

// A single fight is told at once, although it is a rise by one.
func TestFirstDriftFight(t *testing.T) {
	s := newServer(t)
	rule := alerts(t)["TunnelGatewayDriftFight"]
	s.minutes(5, s.well)
	if s.fires(rule) {
		t.Error("it fires before anything happened")
	}
	s.RecordDriftContested(shared)
	s.minutes(2, func() {})
	if !s.fires(rule) {
		t.Error("it does not fire")
	}
}

// An alert ends with the Gateway.
func TestAlertEndsWithTheGateway(t *testing.T) {
	s := newServer(t)
	s.minutes(15, func() { s.SetGateway(shared, metrics.Gateway{}) })
	rule := alerts(t)["TunnelGatewayNotProgrammed"]
	if !s.fires(rule) {
		t.Error("it does not fire")
	}
	s.DeleteGateway(shared)
	s.minutes(6, func() {}) // longer than Prometheus looks back
	if s.fires(rule) {
		t.Error("it fires for a Gateway that is gone")
	}
}
