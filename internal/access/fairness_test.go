package access_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// numbered returns demands of a namespace for numbered hostnames.
func numbered(namespace string, number int, policies ...v1alpha1.PolicyName) []access.Demand {
	demands := make([]access.Demand, number)
	for i := range demands {
		demands[i] = demand(namespace, fmt.Sprintf("h%02d.%s.example.com", i, namespace), policies...)
	}
	return demands
}

// Namespaces take turns: a namespace with one demand waits for at most one application of
// each other one.
func TestNamespacesTakeTurns(t *testing.T) {
	s := newScenario(t)
	demands := append(numbered("team-a", 40, "employees"), numbered("team-b", 40, "employees")...)
	late := demand("team-c", www, "employees")
	late.Created = epoch.Add(time.Hour)
	s.set(gateway(alpha, append(demands, late)...))
	for i := 0; s.find(www).ID == ""; i++ {
		if i > 10 {
			t.Fatal("the demand of the third namespace waits")
		}
		s.execute(s.next())
	}
	if n := len(s.takeLog()); n > access.MaxWrites {
		t.Errorf("%d writes came first", n)
	}
}

// A namespace whose hostnames an entry of the GatewayClass protects takes no place and no turn
// from others, however many hostnames it has.
func TestHostnamesBelowAnEntryOfTheClassAreShared(t *testing.T) {
	s := newScenario(t)
	s.settings(func(a *settings.Applications) { a.MaxApplications = 20 })
	one, other := ofClass(demand("team-b", "www.b.example.com", "employees")), demand("team-c", www, "employees")
	s.set(gateway(alpha, one, other))
	s.run()
	many := numbered("team-a", 200, "employees")
	for i := range many {
		many[i] = ofClass(many[i])
	}
	late := ofClass(demand("team-d", "www.d.example.com", "employees"))
	s.set(gateway(alpha, append(many, one, other, late)...))
	s.takeLog()
	s.execute(s.next())
	s.execute(s.next())
	s.execute(s.next())
	if log := s.takeLog(); !slices.Contains(log, "create www.d.example.com alpha employees") {
		t.Errorf("the first writes are %q", log)
	}
	s.runFor(5 * time.Minute)
	for _, hostname := range []string{"www.b.example.com", www, "www.d.example.com"} {
		s.wantReason("with many hostnames of another namespace", alpha, hostname, "Protected")
	}
	s.wantReason("of the last of them", alpha, many[199].Hostname, "LimitExceeded")
	s.takeLog()
	first := ofClass(demand("team-a", "a.team-a.example.com", "employees"))
	s.set(gateway(alpha, append(many, one, other, late, first)...))
	s.runFor(5 * time.Minute)
	s.wantReason("of a new hostname", alpha, first.Hostname, "LimitExceeded")
	s.wantReason("of an older one", alpha, many[0].Hostname, "Protected")
	s.wantLog("after a new hostname")
}

// A tenant that changes its policies all the time delays no first application, and gets at
// most 60 changes in five minutes.
func TestChangesWithoutPause(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, numbered("team-a", 50, "employees")...))
	s.runFor(6 * time.Minute)
	s.takeLog()
	policies := [][]v1alpha1.PolicyName{{"ci"}, {"guests"}}
	changes, worst := 0, time.Duration(0)
	for i := range 55 {
		s.set(gateway(alpha, numbered("team-a", 50, policies[i%2]...)...))
		if i%10 == 3 {
			s.set(gateway(beta, demand("team-b", fmt.Sprintf("new%d.example.com", i), "employees")))
			asked := s.facts.Uptime
			for s.verdict(beta, fmt.Sprintf("new%d.example.com", i)).Reason.String() != "Protected" {
				if step := s.next(); step.Ends() {
					s.wait(max(step.Delay, time.Millisecond))
				} else {
					s.execute(step)
				}
			}
			worst = max(worst, s.facts.Uptime-asked)
		}
		s.runFor(5 * time.Second)
	}
	for _, line := range s.takeLog() {
		if len(line) > 6 && line[:6] == "update" && line[len(line)-8:] == "tgrevoke" {
			changes++
		}
	}
	if changes > 60 || changes < 55 {
		t.Errorf("in five minutes, %d changes were made", changes)
	}
	if worst > time.Minute {
		t.Errorf("a first application waited %s", worst)
	}
}

// Other changes of one application come at least a minute apart, but one that removes a
// policy comes at once.
func TestUpdatesAreSpaced(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.set(gateway(alpha, demand("team-a", www, "employees", "ci")))
	s.run()
	s.takeLog()
	s.set(gateway(alpha, demand("team-a", www, "employees", "ci", "guests")))
	s.runFor(58 * time.Second)
	s.wantLog("within a minute")
	if v := s.verdict(alpha, www); v.Reason.String() != "Pending" {
		t.Errorf("within a minute, the verdict is %+v", v)
	}
	s.runFor(3 * time.Second)
	s.wantLog("after a minute", "update www.example.com alpha employees ci guests")
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.wantLog("at once", "update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha employees")
}

// The applications of the GatewayClass count for no namespace: 400 hostnames get theirs
// without a pause, eight at a time.
func TestFourHundredHostnames(t *testing.T) {
	s := newScenario(t)
	var demands []access.Demand
	for i := range 350 {
		demands = append(demands, ofClass(demand("team-a", fmt.Sprintf("h%03d.example.com", i), "employees")))
	}
	demands = append(demands, numbered("team-a", 50, "ci")...)
	s.set(gateway(alpha, demands...))
	s.run()
	if n := len(s.takeLog()); n != 400 {
		t.Errorf("%d writes were sent", n)
	}
	if s.calls[access.Apply] > 52 || s.calls[access.ReadApplications] > 2 {
		t.Errorf("the steps are %v", s.calls)
	}
	if r := s.report(); r.Managed != 400 || r.Waiting != 0 {
		t.Errorf("%d applications exist, %d writes wait", r.Managed, r.Waiting)
	}
}
