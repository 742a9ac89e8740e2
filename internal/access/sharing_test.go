package access_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// While two Gateways use one application, a wider demand of the first one waits until the
// rules of the second one no longer accept its tokens; a stricter one does not.
func TestWiderDemandsWaitForOtherGateways(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees", "guests")))
	s.set(gateway(beta, demand("team-a", www, "employees", "guests")))
	s.run()
	s.demandTokens(alpha, www)
	s.demandTokens(beta, www)
	s.runFor(2 * time.Minute)
	s.takeLog()
	s.set(gateway(alpha, demand("team-a", www, "employees", "guests", "ci")))
	s.run()
	s.wantLog("while both rules accept its tokens")
	s.wantReason("of the first Gateway", alpha, www, "Pending")
	s.wantReason("of the second Gateway", beta, www, "Overridden")
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.wantLog("after a stricter demand", "update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha employees")
	s.set(gateway(alpha, demand("team-a", www, "employees", "ci")))
	s.demandTokens(beta)
	s.runFor(2 * time.Minute)
	s.wantLog("when only one rule accepts its tokens", "update www.example.com alpha employees ci")
}

// A namespace that uses less than its share gets a place: the youngest application of the
// largest namespace ends. A lower maxApplications alone ends none.
func TestPlacesAreShared(t *testing.T) {
	s := newScenario(t)
	s.settings(func(a *settings.Applications) { a.MaxApplications = 4 })
	demands := numbered("team-a", 4, "employees")
	for i := range demands {
		demands[i].Created = epoch.Add(time.Duration(i) * time.Minute)
	}
	s.set(gateway(alpha, demands...))
	s.run()
	s.takeLog()
	s.set(gateway(beta, demand("team-b", www, "ci")))
	s.runFor(29 * time.Second)
	s.wantLog("before the opening delay")
	s.wantReason("of the youngest", alpha, demands[3].Hostname, "LimitExceeded")
	s.wantReason("of the second namespace", beta, www, "Pending")
	s.runFor(2 * time.Second)
	s.wantLog("after the opening delay", "delete "+demands[3].Hostname+" alpha", "create www.example.com beta ci")
	s.settings(func(a *settings.Applications) { a.MaxApplications = 1 })
	s.runFor(time.Hour)
	s.wantLog("with a lower limit")
	reasons := ""
	for _, d := range demands {
		reasons += s.verdict(alpha, d.Hostname).Reason.String() + " "
	}
	if want := "LimitExceeded LimitExceeded LimitExceeded LimitExceeded "; reasons != want {
		t.Errorf("the reasons are %q, want %q", reasons, want)
	}
	s.wantReason("of the second namespace", beta, www, "Protected")
}

// Two names of one policy in the catalogue are one policy.
func TestTwoNamesOfAPolicy(t *testing.T) {
	s := newScenario(t)
	s.settings(func(a *settings.Applications) {
		a.Catalogue = map[v1alpha1.PolicyName]string{"employees": "p-employees", "staff": "p-employees"}
	})
	s.set(gateway(alpha, demand("team-a", www, "employees", "staff")))
	s.runFor(time.Hour)
	s.wantLog("within an hour", "create www.example.com alpha employees")
}

// The application of a wildcard waits for its exceptions, which count for their namespace.
func TestManyExceptions(t *testing.T) {
	s := newScenario(t)
	g := gateway(alpha, demand("team-a", star, "employees"))
	for i := range 60 {
		g = with(g, "team-b", fmt.Sprintf("h%02d.example.com", i), func(h *access.Hostname) { h.Created = epoch.Add(time.Duration(i) * time.Second) })
	}
	s.set(g)
	s.run()
	log := s.takeLog()
	if len(log) != 51 || log[50] != "create *.example.com alpha employees" {
		t.Errorf("the writes are %q", log)
	}
	s.wantReason("of the youngest hostname", alpha, "h59.example.com", "LimitExceeded")
	s.wantReason("of the wildcard", alpha, star, "Protected")
}
