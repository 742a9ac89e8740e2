package metrics

import (
	"errors"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/metrics"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

const (
	alertsFile        = "../../../charts/tunnel-gateway/files/alerts.yaml"
	trafficAlertsFile = "../../../charts/tunnel-gateway/files/traffic-alerts.yaml"
	runbook           = "../../../docs/runbook.md"
	conditionsPage    = "../../../docs/conditions.md"
	runbookURL        = "https://github.com/tunnel-gateway/tunnel-gateway/blob/main/docs/runbook.md#"
)

// alerts returns the alerts on the controller's metrics.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	return readAlerts(t, alertsFile)
}

// trafficAlerts returns the alerts on Envoy's metrics.
func trafficAlerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	return readAlerts(t, trafficAlertsFile)
}

// readAlerts returns the chart's alerts by name. Prometheus also checks their templates.
func readAlerts(t *testing.T, file string) map[string]rulefmt.Rule {
	t.Helper()
	groups, errs := rulefmt.ParseFile(file, false, model.UTF8Validation, queryParser, nil)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	all := map[string]rulefmt.Rule{}
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			if _, exists := all[rule.Alert]; exists || rule.Alert == "" {
				t.Errorf("alert %q exists twice or has no name", rule.Alert)
			}
			all[rule.Alert] = rule
		}
	}
	return all
}

// TestAlertsHaveADescriptionAndARunbookSection checks each alert's labels and
// annotations, and the runbook sections.
func TestAlertsHaveADescriptionAndARunbookSection(t *testing.T) {
	page, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (\w+)$`).FindAllStringSubmatch(string(page), -1) {
		sections[strings.ToLower(heading[1])] = true
	}
	all := alerts(t)
	for _, rule := range all {
		checkNames(t, rule.Expr)
	}
	maps.Copy(all, trafficAlerts(t))
	for name, rule := range all {
		if rule.Labels["severity"] == "" || rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" {
			t.Errorf("alert %s has no severity, summary or description", name)
		}
		anchor, ok := strings.CutPrefix(rule.Annotations["runbook_url"], runbookURL)
		if !ok || anchor != strings.ToLower(name) || !sections[anchor] {
			t.Errorf("the runbook URL of alert %s is %q, which is not its section in the runbook", name, rule.Annotations["runbook_url"])
		}
		delete(sections, anchor)
	}
	delete(sections, "runbook")
	for section := range sections {
		t.Errorf("section %q of the runbook has no alert", section)
	}
}

// TestRunbookNamesOnlyExistingReasons checks the condition types and reasons and the
// events that the runbook names.
func TestRunbookNamesOnlyExistingReasons(t *testing.T) {
	page, err := os.ReadFile(runbook)
	if err != nil {
		t.Fatal(err)
	}
	reference, err := os.ReadFile(conditionsPage)
	if err != nil {
		t.Fatal(err)
	}
	// Names that have no condition: the phases of a change, and a Kubernetes reason.
	known := map[string]bool{"AddingEnvoy": true, "RemovingEnvoy": true, "OOMKilled": true}
	for _, name := range regexp.MustCompile(`\w+`).FindAllString(string(reference), -1) {
		known[name] = true
	}
	names := regexp.MustCompile("`(?:tunnelgateway\\.dev/)?([A-Z]\\w*[a-z][A-Z]\\w*)`").FindAllStringSubmatch(string(page), -1)
	for _, name := range names {
		if !known[name[1]] {
			t.Errorf("the runbook names %s, which the page about conditions does not describe", name[1])
		}
	}
	if len(names) < 10 {
		t.Errorf("the runbook names only %d conditions, reasons and events", len(names))
	}
}

// fires reports whether the alert fires now: its expression has been true for the alert's
// duration, in each scrape.
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

// alertCases are situations, each with a function that records its metrics every
// minute, and the alerts that fire.
var alertCases = map[string]struct {
	record func(*prometheusServer)
	want   []string
}{
	"normal operation": {record: func(s *prometheusServer) {
		s.recordHealthy()
		s.RecordPush(sharedGateway, 100)
		s.SetOldestChange(sharedGateway, s.now.Add(-time.Second))
		s.callProvider(nil)
	}},
	"one repaired external change": {record: func(s *prometheusServer) {
		s.recordHealthy()
		if s.now.Minute() == 20 {
			s.RecordDriftRepair(sharedGateway)
		}
	}},
	"an external change every 15 minutes": {want: []string{"TunnelGatewayDriftRepairs"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		if s.now.Minute()%15 == 0 {
			s.RecordDriftRepair(sharedGateway)
		}
	}},
	"changes wait now and then": {record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, Throttled: s.now.Minute()%3 == 0})
	}},
	"changes wait most of the time": {want: []string{"TunnelGatewayChangesThrottled"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, Throttled: s.now.Minute()%3 != 0})
	}},
	"a paused Gateway": {record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Paused: true, Connectors: &metrics.Connectors{}})
	}},
	"a Gateway that is paused for fifty minutes": {record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Paused: true, PausedSince: startTime, Connectors: &metrics.Connectors{}})
	}},
	"a Gateway that is paused for more than an hour": {want: []string{"TunnelGatewayPaused"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Paused: true, PausedSince: startTime.Add(-15 * time.Minute), Connectors: &metrics.Connectors{}})
	}},
	"drift checks wait for the request budget": {record: func(s *prometheusServer) {
		s.recordHealthy()
		s.callProviderWithPriority(provider.PriorityDrift, &provider.RateLimitedError{RetryAfter: time.Minute, Budget: true})
	}},
	"an error every ten minutes": {record: func(s *prometheusServer) {
		s.recordHealthy()
		if s.now.Minute()%10 == 0 {
			s.RecordError(sharedGateway, conditions.ReasonCloudflareUnavailable)
		}
	}},
	"zero connector replicas": {record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, Connectors: &metrics.Connectors{}})
	}},
	"connectors are disabled": {record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true})
	}},
	"a Gateway is not programmed": {want: []string{"TunnelGatewayNotProgrammed"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{})
	}},
	"each change waits up to five minutes": {record: func(s *prometheusServer) {
		s.recordHealthy()
		s.callProvider(&provider.RateLimitedError{RetryAfter: time.Minute})
		s.SetOldestChange(sharedGateway, s.now.Add(-time.Duration(s.now.Minute()%5)*time.Minute))
	}},
	"a change waits for a long time": {want: []string{"TunnelGatewayChangesLate"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetOldestChange(sharedGateway, startTime.Add(10*time.Minute))
	}},
	"a change waits for the rate limit of the API": {want: []string{"TunnelGatewayChangesLate", "TunnelGatewayRateBudgetExhausted"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.callProvider(&provider.RateLimitedError{RetryAfter: time.Minute})
		s.SetOldestChange(sharedGateway, startTime.Add(10*time.Minute))
	}},
	"a change waits for the request budget": {want: []string{"TunnelGatewayChangesLate", "TunnelGatewayRateBudgetExhausted"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.callProvider(&provider.RateLimitedError{RetryAfter: time.Minute, Budget: true})
		s.SetOldestChange(sharedGateway, startTime.Add(10*time.Minute))
	}},
	"a change waited and is pushed": {record: func(s *prometheusServer) {
		s.recordHealthy()
		if s.SetOldestChange(sharedGateway, startTime); s.now.Minute() > 30 {
			s.SetOldestChange(sharedGateway, time.Time{})
		}
	}},
	"external changes have stopped the controller": {want: []string{"TunnelGatewayDriftFight", "TunnelGatewayNotProgrammed"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{})
		if s.now.Minute() == 40 {
			s.RecordDriftContested(sharedGateway)
		}
	}},
	"a namespace uses most of its listeners": {want: []string{"TunnelGatewayLimitNearlyReached"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, Limits: map[limits.Name]metrics.LimitUsage{
			limits.ListenersPerNamespace: {Used: 60, Limit: 64}, limits.RulesPerTunnel: {Used: 800, Limit: 1000},
		}})
	}},
	"routes are above a limit": {want: []string{"TunnelGatewayLimitExceeded"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, AboveLimit: map[metrics.LimitedKind]int{metrics.LimitedRoute: 2}})
	}},
	"connectors are down": {want: []string{"TunnelGatewayConnectorsDown"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, Connectors: &metrics.Connectors{Desired: 2}})
	}},
	"Envoy rejects its configuration": {want: []string{"TunnelGatewayEnvoyRejected"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true})
		if s.now.Minute() == 40 {
			s.RecordXDSRejection(sharedGateway, metrics.XDSRoutes)
		}
	}},
	"no Envoy has connected": {want: []string{"TunnelGatewayEnvoyDisconnected"}, record: func(s *prometheusServer) {
		s.recordEnvoy(2)
		s.SetConnectedEnvoys(sharedGateway, 0)
	}},
	"no Envoy has ever connected, and nothing was published": {want: []string{"TunnelGatewayEnvoyDisconnected"}, record: func(s *prometheusServer) {
		s.recordEnvoy(2)
		s.DeleteConnectedEnvoys(sharedGateway)
	}},
	"no Envoy is connected for four minutes": {record: func(s *prometheusServer) {
		s.recordEnvoy(2)
		s.SetConnectedEnvoys(sharedGateway, min(s.now.Minute()%5, 1))
	}},
	"Envoy with zero replicas": {record: func(s *prometheusServer) {
		s.recordEnvoy(0)
		s.SetConnectedEnvoys(sharedGateway, 0)
	}},
	"ingress rules after Envoy": {record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetConnectedEnvoys(sharedGateway, 0)
	}},
	"the data plane changes for nine minutes, and no Envoy is connected": {record: func(s *prometheusServer) {
		s.recordDataPlaneChange(s.now.Add(-8*time.Minute), false)
		s.SetConnectedEnvoys(sharedGateway, 0)
	}},
	"the data plane changes for twelve minutes": {want: []string{"TunnelGatewayDataPlaneChangeSlow"}, record: func(s *prometheusServer) {
		s.recordDataPlaneChange(startTime.Add(38*time.Minute), false)
	}},
	"a change to ingress rules cannot begin": {want: []string{"TunnelGatewayDataPlaneLimitExceeded"}, record: func(s *prometheusServer) {
		s.recordDataPlaneLimit(true)
	}},
	"a change to ingress rules could not begin for nine minutes": {record: func(s *prometheusServer) {
		s.recordDataPlaneLimit(s.now.Minute()%10 != 0)
	}},
	"a paused data plane change": {record: func(s *prometheusServer) {
		s.recordDataPlaneChange(startTime, true)
	}},
	"the data plane has changed": {record: func(s *prometheusServer) {
		if s.recordDataPlaneChange(startTime, false); s.now.Minute() > 30 {
			s.recordEnvoy(2)
		}
	}},
	"more pairs than Envoy counts": {want: []string{"TunnelGatewayEnvoyPairsUncounted"}, record: func(s *prometheusServer) {
		s.recordUncountedPairs(3)
	}},
	"all pairs are counted": {record: func(s *prometheusServer) {
		s.recordUncountedPairs(0)
	}},
	"a certificate of the Envoys is not renewed": {want: []string{"TunnelGatewayEnvoyCertificateExpires"}, record: func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true})
		s.SetCertificateExpiry(startTime.Add(13*24*time.Hour), startTime.Add(365*24*time.Hour))
	}},
	"no replica leads": {want: []string{"TunnelGatewayDown"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.replicas[releasePods[0]] = 0
	}},
	"the Gateway has not existed for two hours": {want: []string{"TunnelGatewayTunnelNotDeleted"}, record: func(s *prometheusServer) {
		s.SetGatewayMissing(sharedGateway, startTime.Add(-2*time.Hour))
	}},
	"the Gateway has not existed for half an hour": {record: func(s *prometheusServer) {
		s.SetGatewayMissing(sharedGateway, startTime.Add(20*time.Minute))
	}},
	"the Gateway exists again or its tunnel is retained": {record: func(s *prometheusServer) {
		s.SetGatewayMissing(sharedGateway, startTime.Add(-2*time.Hour))
		if s.now.Minute() > 30 {
			s.SetGatewayMissing(sharedGateway, time.Time{})
		}
	}},
	"tunnels without a Tunnel": {want: []string{"TunnelGatewayOrphanedTunnels"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetAccount("west", 10, 2)
	}},
	"900 tunnels in the account": {record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetAccount("west", 900, 0)
	}},
	"901 tunnels in the account": {want: []string{"TunnelGatewayAccountFull"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetAccount("west", 901, 0)
	}},
	"a status that cannot be written": {want: []string{"TunnelGatewayStatusNotWritten"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetUnwrittenStatuses(sharedGateway, 1)
	}},
	"a status that could not be written for ten minutes": {record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetUnwrittenStatuses(sharedGateway, 1)
		if s.now.Minute() > 10 {
			s.SetUnwrittenStatuses(sharedGateway, 0)
		}
	}},
	"a record conflicts with a hostname": {want: []string{"TunnelGatewayRecordConflict"}, record: func(s *prometheusServer) {
		s.recordZone(metrics.Zone{Verdicts: map[string]int{"RecordConflict": 1, "Managed": 3}, Records: 180, Quota: 200})
	}},
	"a conflict that ended": {record: func(s *prometheusServer) {
		s.recordZone(metrics.Zone{Verdicts: map[string]int{"RecordConflict": min(1, 40/max(1, s.now.Minute()))}, Records: 180, Quota: 200})
	}},
	"an orphaned record": {want: []string{"TunnelGatewayOrphanedRecords"}, record: func(s *prometheusServer) {
		s.recordZone(metrics.Zone{Verdicts: map[string]int{"Orphan": 2}, Records: 100, Quota: 200})
	}},
	"181 of 200 records": {want: []string{"TunnelGatewayZoneQuota"}, record: func(s *prometheusServer) {
		s.recordZone(metrics.Zone{Records: 181, Quota: 200})
	}},
	"a zone whose quota is unknown": {record: func(s *prometheusServer) {
		s.recordZone(metrics.Zone{Records: 5000})
	}},
	"a token that lost its permission hours ago": {want: []string{"TunnelGatewayDNSForbidden"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetZone("example.com", metrics.Zone{Forbidden: true, Records: 100, Quota: 200, ReadAt: startTime.Add(-3 * time.Hour)})
	}},
	"a zone without a token": {want: []string{"TunnelGatewayDNSForbidden"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetZone("example.com", metrics.Zone{Forbidden: true})
	}},
	"a zone that was read three hours ago": {want: []string{"TunnelGatewayZoneNotRead"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetZone("example.com", metrics.Zone{Records: 100, Quota: 200, ReadAt: startTime.Add(-2 * time.Hour)})
	}},
	"a zone that was never read": {want: []string{"TunnelGatewayZoneNotRead"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetZone("example.com", metrics.Zone{})
	}},
	"a large zone that is read every hour": {record: func(s *prometheusServer) {
		s.recordHealthy()
		s.SetZone("example.com", metrics.Zone{Records: 30000, ReadAt: startTime})
	}},
	"an application of another writer": {want: []string{"TunnelGatewayApplicationExists"}, record: func(s *prometheusServer) {
		s.recordAccess(metrics.Access{Reasons: map[string]int{"ApplicationExists": 1, "Protected": 3}, Total: 60})
	}},
	"an application that another client keeps changing": {want: []string{"TunnelGatewayApplicationContested"}, record: func(s *prometheusServer) {
		s.recordAccess(metrics.Access{Reasons: map[string]int{"Contested": 1}, Total: 60})
	}},
	"an orphaned application": {want: []string{"TunnelGatewayOrphanedApplications"}, record: func(s *prometheusServer) {
		s.recordAccess(metrics.Access{Orphans: 1, Total: 60})
	}},
	"401 of 500 applications": {want: []string{"TunnelGatewayAccountApplications"}, record: func(s *prometheusServer) {
		s.recordAccess(metrics.Access{Total: 401})
	}},
	"400 of 500 applications": {record: func(s *prometheusServer) {
		s.recordAccess(metrics.Access{Reasons: map[string]int{"Protected": 390, "Pending": 10}, Managed: 390, Total: 400, Waiting: 10})
	}},
	"a token for Access without the permission": {want: []string{"TunnelGatewayAccessForbidden"}, record: func(s *prometheusServer) {
		s.recordAccess(metrics.Access{Reasons: map[string]int{"Forbidden": 2}, Forbidden: true})
	}},
	"an error every minute": {want: []string{"TunnelGatewayReconcileErrors"}, record: func(s *prometheusServer) {
		s.recordHealthy()
		s.RecordError(sharedGateway, conditions.ReasonUnauthorized)
	}},
}

// recordHealthy records a healthy Gateway's metrics.
func (s *prometheusServer) recordHealthy() {
	s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, Connectors: &metrics.Connectors{Ready: true, Desired: 2, Available: 1}})
	s.SetConnectedEnvoys(sharedGateway, 1)
	s.ObserveAcknowledgement(metrics.XDSRoutes, 20*time.Millisecond)
	s.SetCertificateExpiry(startTime.Add(60*24*time.Hour), startTime.Add(365*24*time.Hour))
}

// recordAccess records the metrics of a healthy Gateway and of an account's applications, which
// have just been read.
func (s *prometheusServer) recordAccess(a metrics.Access) {
	s.recordHealthy()
	a.ReadAt = s.now
	s.SetAccess("account", a)
}

// recordZone records the metrics of a zone that has just been read.
func (s *prometheusServer) recordZone(z metrics.Zone) {
	s.recordHealthy()
	z.ReadAt = s.now
	s.SetZone("example.com", z)
}

// recordEnvoy records the metrics for a Gateway with Envoy, and no connected Envoys.
func (s *prometheusServer) recordEnvoy(replicas int) {
	s.SetGateway(sharedGateway, metrics.Gateway{
		Programmed: true, Connectors: &metrics.Connectors{Desired: replicas, Available: replicas}, DataPlane: &metrics.DataPlane{},
	})
}

// recordDataPlaneLimit records the metrics for a Gateway with Envoy whose settings ask
// for ingress rules.
func (s *prometheusServer) recordDataPlaneLimit(exceeded bool) {
	s.recordHealthy()
	s.SetGateway(sharedGateway, metrics.Gateway{
		Programmed: true, Connectors: &metrics.Connectors{Desired: 2, Available: 2}, DataPlane: &metrics.DataPlane{LimitExceeded: exceeded},
	})
}

// recordUncountedPairs records the metrics for a Gateway with metrics by route.
func (s *prometheusServer) recordUncountedPairs(n int) {
	s.recordHealthy()
	s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, UncountedPairs: &n})
}

// recordDataPlaneChange records the metrics for a Gateway that changes to Envoy.
func (s *prometheusServer) recordDataPlaneChange(start time.Time, paused bool) {
	s.SetGateway(sharedGateway, metrics.Gateway{
		Programmed: true, Paused: paused, Connectors: &metrics.Connectors{Desired: 2, Available: 2},
		DataPlane: &metrics.DataPlane{}, DataPlaneChangeStart: start,
	})
}

// TestSituationsFireTheExpectedAlerts checks which alerts fire in each of alertCases, and
// that each alert fires in at least one of them.
func TestSituationsFireTheExpectedAlerts(t *testing.T) {
	all := alerts(t)
	seen := map[string]bool{}
	for name, test := range alertCases {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.advance(5, s.recordHealthy)
			s.advance(45, func() { test.record(s) })
			want := map[string]bool{}
			for _, alert := range test.want {
				want[alert], seen[alert] = true, true
			}
			for alert, rule := range all {
				if got := s.fires(rule); got != want[alert] {
					t.Errorf("%s fires: %v, want %v", alert, got, want[alert])
				}
			}
		})
	}
	for alert := range all {
		if !seen[alert] {
			t.Errorf("%s fires in no case", alert)
		}
	}
}

// TestDriftFightAlertFiresForTheFirstEvent checks that it is enough if the counter
// increases from 0 to 1.
func TestDriftFightAlertFiresForTheFirstEvent(t *testing.T) {
	s := newServer(t)
	rule := alerts(t)["TunnelGatewayDriftFight"]
	s.advance(5, s.recordHealthy)
	if s.fires(rule) {
		t.Error("the alert fires before the first event")
	}
	s.RecordDriftContested(sharedGateway)
	s.advance(2, func() {})
	if !s.fires(rule) {
		t.Error("the alert does not fire")
	}
}

// TestRejectedAlertFiresUntilEnvoyHasAnotherConfiguration checks that the alert fires as
// long as changes do not take effect: even if the rejection was hours ago, or if a new
// leader is first scraped after the rejection.
func TestRejectedAlertFiresUntilEnvoyHasAnotherConfiguration(t *testing.T) {
	rule := alerts(t)["TunnelGatewayEnvoyRejected"]
	rejected := func(s *prometheusServer) {
		s.SetGateway(sharedGateway, metrics.Gateway{Programmed: true, DataPlane: &metrics.DataPlane{Rejected: true}})
	}
	t.Run("hours later", func(t *testing.T) {
		s := newServer(t)
		s.advance(5, s.recordHealthy)
		s.RecordXDSRejection(sharedGateway, metrics.XDSRoutes)
		s.advance(120, func() { rejected(s) })
		if !s.fires(rule) {
			t.Error("the alert does not fire")
		}
		s.advance(6, func() { s.recordEnvoy(2) })
		if s.fires(rule) {
			t.Error("the alert fires although Envoy has accepted another configuration")
		}
	})
	t.Run("before the first scrape", func(t *testing.T) {
		s := newServer(t)
		s.RecordXDSRejection(sharedGateway, metrics.XDSRoutes)
		s.advance(5, func() { rejected(s) })
		if !s.fires(rule) {
			t.Error("the alert does not fire")
		}
	})
}

// TestNotProgrammedAlertEndsWhenTheGatewayIsDeleted checks that a deleted Gateway's
// metrics do not keep the alert active.
func TestNotProgrammedAlertEndsWhenTheGatewayIsDeleted(t *testing.T) {
	s := newServer(t)
	s.advance(15, func() { s.SetGateway(sharedGateway, metrics.Gateway{}) })
	rule := alerts(t)["TunnelGatewayNotProgrammed"]
	if !s.fires(rule) {
		t.Error("the alert does not fire")
	}
	s.DeleteGateway(sharedGateway)
	s.advance(6, func() {}) // longer than Prometheus' lookback delta
	if s.fires(rule) {
		t.Error("the alert fires for a deleted Gateway")
	}
}
