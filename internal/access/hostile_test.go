package access_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
)

// Tags that only look like those of this installation make no application its own.
func TestTagsOfOthers(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	own := s.find(www).Tags[0]
	for i, tag := range []string{
		"tg" + strings.Repeat("0", 32), strings.ToUpper(own), own[:33] + "g", own[:33], own + "0", "x" + own[1:], "tgrevoke", "tgcontested",
		"tg" + strings.Repeat("0", 12) + own[14:],
	} {
		_ = s.database.CreateTag(account, tag)
		s.add(fmt.Sprintf(`{"type": "self_hosted", "name": "by hand", "domain": "h%d.example.com", "tags": [%q]}`, i, tag))
	}
	s.takeLog()
	s.runFor(time.Hour)
	s.wantLog("with such tags")
	if r := s.report(); r.Managed != 1 || len(r.Orphans) != 0 {
		t.Errorf("the installation has %d applications and the orphans %v", r.Managed, r.Orphans)
	}
}

// A tag copied to another application makes it the installation's, but as nothing demands it,
// it goes only after the opening delay; and the application of the demand stays.
func TestCopiedTag(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.add(fmt.Sprintf(`{"type": "self_hosted", "name": "www.example.com", "domain": "copy.example.com", "tags": [%q]}`, s.find(www).Tags[0]))
	s.takeLog()
	s.runFor(11 * time.Minute)
	s.wantLog("after the copy", "delete copy.example.com alpha")
	s.wantReason("after the copy", alpha, www, "Protected")
}

// A tenant that changes its demand while its last change is on its way is no other writer.
func TestQuickChangesOfADemandAreNotExternal(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	for _, policies := range [][]v1alpha1.PolicyName{{"employees", "ci"}, {"guests"}, {"ci"}, {"employees"}, {"guests", "ci"}, {"employees", "guests"}} {
		s.set(gateway(alpha, demand("team-a", www, policies...)))
		for range 20 {
			step := s.next()
			if updates := step.Action == access.Apply && step.Writes[0].Operation == access.Update; updates {
				s.set(gateway(alpha, demand("team-a", www, "employees", policies[0])))
				s.execute(step)
				break
			} else if step.Ends() {
				s.wait(max(step.Delay, time.Millisecond))
			} else {
				s.execute(step)
			}
		}
		if tags := s.find(www).Tags; slices.Contains(tags, "tgcontested") {
			t.Fatalf("the tags are %q, after %q", tags, s.takeLog())
		}
	}
	s.runFor(2 * time.Minute)
	s.wantReason("after quick changes", alpha, www, "Protected")
}

// The AUD tag of an application in an entry by hand of another Gateway does not keep the
// application from its owner.
func TestEntryByHandBlocksNoChange(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.set(with(gateway(beta), "team-b", "other.example.net", func(h *access.Hostname) { h.ByHand = true }))
	s.demandTokens(beta, www)
	s.takeLog()
	s.set(gateway(alpha, demand("team-a", www, "employees", "guests")))
	s.runFor(2 * time.Minute)
	s.wantLog("after a wider demand", "update www.example.com alpha employees guests")
	s.set(gateway(alpha, ofClass(demand("team-a", www, "employees"))))
	s.runFor(2 * time.Minute)
	s.wantLog("after a demand of another level", "delete www.example.com alpha", "create www.example.com alpha employees")
	s.set(gateway(alpha))
	s.demandTokens(beta, www)
	s.runFor(2 * time.Minute)
	s.wantLog("after the demand", "delete www.example.com alpha")
}

// A demand without the permission puts no login in front of another namespace's hostname.
func TestDemandWithoutPermissionPreventsNoBypass(t *testing.T) {
	s := newScenario(t)
	s.set(with(gateway(alpha, demand("team-a", star, "employees")), "team-b", app))
	s.run()
	s.wantLog("before", "create app.example.com alpha bypass", "create *.example.com alpha employees")
	hostile := demand("team-c", app, "employees")
	hostile.Permitted = false
	s.set(gateway(beta, hostile))
	s.runFor(20 * time.Minute)
	s.wantLog("after another Gateway demands the hostname")
	s.wantReason("without the permission", beta, app, "HostnameNotPermitted")
}

// The application of a wildcard is not made before all hostnames are known that need an
// exception from its login.
func TestWildcardWaitsForAllGateways(t *testing.T) {
	s := newScenario(t)
	s.facts.GatewaysKnown = false
	s.set(gateway(alpha, demand("team-a", star, "employees"), demand("team-a", "www.example.org", "employees")))
	s.runFor(time.Minute)
	s.wantLog("while a Gateway is unknown", "create www.example.org alpha employees")
	s.wantReason("of the wildcard", alpha, star, "Pending")
	s.set(with(gateway(beta), "team-b", app))
	s.facts.GatewaysKnown = true
	s.run()
	s.wantLog("then", "create app.example.com beta bypass", "create *.example.com alpha employees")
}

// Applications with odd contents cause no harm.
func TestOddApplications(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-a", app, "employees")))
	s.run()
	s.edit(www, func(fields map[string]any) { fields["policies"] = []string{} })
	s.edit(app, func(fields map[string]any) {
		fields["policies"] = []any{map[string]any{"name": "all", "decision": "bypass", "include": []any{map[string]any{"everyone": map[string]any{}}}}}
		fields["session_duration"], fields["name"] = "720h", "*.*"
	})
	s.takeLog()
	s.runFor(11 * time.Minute)
	log := s.takeLog()
	slices.Sort(log)
	if len(log) == 0 || !slices.Contains(log, "update app.example.com alpha employees tgrevoke") {
		t.Errorf("the writes are %q", log)
	}
	s.wantReason("after the edits", alpha, www, "Protected")
	s.wantReason("after the edits", alpha, app, "Protected")
}

// The decisions about an account with as many applications and hostnames as possible are
// fast. The bound is generous, for a busy machine.
func TestManyApplications(t *testing.T) {
	s := newScenario(t)
	var demands []access.Demand
	for i := range 100 {
		demands = append(demands, ofClass(demand("team-a", fmt.Sprintf("h%03d.example.com", i), "employees")))
	}
	g := gateway(alpha, demands...)
	for i := range 20_000 {
		g = access.Gateway{NamespacedName: g.NamespacedName, Created: g.Created, Class: g.Class, State: g.State, HasTunnel: true, InEffectKnown: true,
			Demands: g.Demands, Hostnames: append(g.Hostnames, access.Hostname{Name: fmt.Sprintf("o%05d.example.net", i), Namespace: "team-b", Permitted: true})}
	}
	s.set(g)
	for i := range 500 {
		other := gateway(types.NamespacedName{Namespace: "others", Name: fmt.Sprint(i)})
		for j := range 20 {
			other = with(other, "others", fmt.Sprintf("o%d.h%03d.example.com", j, i))
		}
		s.set(other)
	}
	s.run()
	began := time.Now()
	for range 10 {
		s.facts.Memory = access.Observe(s.facts)
		access.Decide(s.facts)
	}
	if took := time.Since(began) / 10; took > 500*time.Millisecond {
		t.Errorf("a decision takes %s", took)
	} else {
		t.Logf("a decision takes %s", took)
	}
}
