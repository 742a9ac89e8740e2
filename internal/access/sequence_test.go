package access_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// A demand gets an application, a stricter one revokes its tokens, and after its end the
// application stays until no rule demands its tokens.
func TestLifeOfAnApplication(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees", "guests")))
	s.run()
	s.wantLog("at first", "create www.example.com alpha employees guests")
	s.wantReason("at first", alpha, www, "Protected")
	s.demandTokens(alpha, www)

	s.runFor(2 * time.Minute)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.wantReason("before the update", alpha, www, "Pending")
	s.run()
	s.wantLog("after a stricter demand", "update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha employees")
	s.wantReason("after a stricter demand", alpha, www, "Protected")

	s.runFor(2 * time.Minute)
	s.set(gateway(alpha, demand("team-a", www, "employees", "ci")))
	s.run()
	s.wantLog("after a wider demand", "update www.example.com alpha employees ci")

	s.set(gateway(alpha))
	s.runFor(time.Minute)
	s.wantLog("while a rule demands its tokens")
	s.demandTokens(alpha)
	s.run()
	s.wantLog("afterwards", "delete www.example.com alpha")
	s.runFor(10 * time.Minute)
	if step := s.next(); step.Action != access.None {
		t.Errorf("after another list, the last step is %+v", step)
	}
}

// The application of a demand that has gone remains for the opening delay.
func TestOpeningDelay(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.takeLog()
	for range 3 {
		s.set(gateway(alpha))
		s.runFor(20 * time.Second)
		s.set(gateway(alpha, demand("team-a", www, "employees")))
		s.runFor(20 * time.Second)
	}
	s.wantLog("with interruptions below the delay")
	s.set(gateway(alpha))
	s.runFor(29 * time.Second)
	s.wantLog("before the delay")
	s.runFor(2 * time.Second)
	s.wantLog("after the delay", "delete www.example.com alpha")
}

// editPolicies sets the policies of an application, as another writer does.
func editPolicies(policies ...string) func(map[string]any) {
	return func(fields map[string]any) { fields["policies"] = policies }
}

// The controller repairs three external changes in an hour. The next one stays, and the
// hostname is reported until the application is as wanted; also after a restart.
func TestContested(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.takeLog()
	repair := []string{"update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha employees"}
	for range 2 {
		s.edit(www, editPolicies("p-employees", "p-guests"))
		s.runFor(11 * time.Minute)
		s.wantLog("after an edit", repair...)
	}
	s.edit(www, editPolicies("p-employees", "p-guests"))
	s.runFor(11 * time.Minute)
	s.wantLog("after the third edit", "update www.example.com alpha employees tgrevoke tgcontested", "revoke www.example.com alpha", "update www.example.com alpha employees tgcontested")
	s.wantReason("after the third repair", alpha, www, "Protected")
	for _, restarts := range []bool{false, true} {
		s.edit(www, editPolicies("p-employees", "p-guests"))
		if restarts {
			s.restart()
		}
		s.runFor(3 * time.Hour)
		s.wantLog("after the fourth edit")
		s.wantReason("after the fourth edit", alpha, www, "Contested")
		s.edit(www, editPolicies("p-employees"))
		s.runFor(11 * time.Minute)
		s.wantLog("after the application was corrected")
		s.wantReason("after the application was corrected", alpha, www, "Protected")
	}
	s.runFor(time.Hour)
	s.wantLog("an hour later", "update www.example.com alpha employees")
	if tags := s.find(www).Tags; len(tags) != 1 {
		t.Errorf("the tags are %q", tags)
	}
}

// A change of the demand is no repair, even while the application has the tag of a contested
// one.
func TestDemandsChangeContestedApplications(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	for range 3 {
		s.edit(www, editPolicies("p-guests"))
		s.runFor(11 * time.Minute)
	}
	s.takeLog()
	s.set(gateway(alpha, demand("team-a", www, "ci")))
	s.run()
	s.wantLog("after another demand", "update www.example.com alpha ci tgcontested tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha ci tgcontested")
	s.edit(www, editPolicies("p-guests"))
	s.runFor(11 * time.Minute)
	s.wantReason("after a fourth edit", alpha, www, "Contested")
}

// Fields that the controller does not set survive its updates, and so do the tags of others.
func TestOtherFieldsSurvive(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	_ = s.database.CreateTag(account, "finance")
	s.edit(www, func(fields map[string]any) {
		fields["name"], fields["logo_url"] = "Intranet", "https://example.com/logo.png"
		fields["tags"] = append(slices.Clone(s.find(www).Tags), "finance")
	})
	s.runFor(11 * time.Minute)
	s.set(gateway(alpha, demand("team-a", www, "employees", "ci")))
	s.takeLog()
	s.run()
	s.wantLog("after another demand", "update www.example.com alpha employees ci")
	a := s.find(www)
	if a.Name != "Intranet" || !slices.Contains(a.Tags, "finance") || string(a.OtherFields()["logo_url"]) != `"https://example.com/logo.png"` {
		t.Errorf("the application is now named %q with the tags %q and the other fields %s", a.Name, a.Tags, a.OtherFields())
	}
}

// Each change is stricter unless it only adds a policy that allows or makes the session
// longer.
func TestStricterChangesRevokeTokens(t *testing.T) {
	for name, change := range map[string]struct {
		edit    func(*access.Demand)
		revokes bool
	}{
		"another policy":          {func(d *access.Demand) { d.Policies = []v1alpha1.PolicyName{"employees", "ci"} }, false},
		"a longer session":        {func(d *access.Demand) { d.SessionDuration = 9 * time.Hour }, false},
		"a shorter session":       {func(d *access.Demand) { d.SessionDuration = 7 * time.Hour }, true},
		"a policy that denies":    {func(d *access.Demand) { d.Policies = []v1alpha1.PolicyName{"employees", "blocked"} }, true},
		"another policy instead":  {func(d *access.Demand) { d.Policies = []v1alpha1.PolicyName{"ci"} }, true},
		"settings for preflights": {func(d *access.Demand) { d.CORS = &v1alpha1.AccessCORS{AllowOrigins: []string{"https://a.example.com"}} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.set(gateway(alpha, demand("team-a", www, "employees")))
			s.run()
			s.takeLog()
			d := demand("team-a", www, "employees")
			change.edit(&d)
			s.set(gateway(alpha, d))
			s.run()
			log := s.takeLog()
			if revokes := len(log) == 3; revokes != change.revokes || len(log) == 0 {
				t.Errorf("the writes are %q", log)
			}
			if s.wantReason("afterwards", alpha, www, "Protected"); slices.Contains(s.find(www).Tags, "tgrevoke") {
				t.Error("the tag tgrevoke remains")
			}
		})
	}
}

// A crash between the requests of a stricter change loses no revocation.
func TestRevocationAfterACrash(t *testing.T) {
	for crash := range 3 {
		s := newScenario(t)
		s.set(gateway(alpha, demand("team-a", www, "employees", "guests")))
		s.run()
		s.set(gateway(alpha, demand("team-a", www, "employees")))
		s.takeLog()
		for made := 0; made <= crash; made = len(s.log) {
			s.execute(s.next())
		}
		s.restart()
		s.run()
		want := []string{"update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha"}
		if crash == 1 {
			want = append(want, "revoke www.example.com alpha") // it is not known that it was made
		}
		s.wantLog(fmt.Sprintf("after a crash after %d writes", crash+1), append(want, "update www.example.com alpha employees")...)
	}
}

// A wildcard's application has the cookie that binds a session to one hostname.
func TestBindingCookie(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", star, "employees"), demand("team-a", www, "employees")))
	s.run()
	if !s.find(star).BindingCookie || s.find(www).BindingCookie {
		t.Errorf("binding cookies: wildcard %t, hostname %t", s.find(star).BindingCookie, s.find(www).BindingCookie)
	}
}

// A Gateway that retires is released when its applications have passed on or are deleted.
func TestReleased(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.set(in(gateway(alpha), ownership.Retiring))
	if s.report().Released[alpha] {
		t.Error("the Gateway is released before its application was deleted")
	}
	s.fail = func(access.Write) error { return provider.ErrForbidden }
	s.run()
	if s.report().Released[alpha] {
		t.Error("the Gateway is released although its application was not deleted")
	}
	s.fail = nil
	s.facts.TokenVersion = "2"
	s.run()
	if !s.report().Released[alpha] {
		t.Error("the Gateway is not released")
	}
	s.set(in(gateway(beta), ownership.Retiring))
	s.settings(func(a *settings.Applications) { a.Mode = v1alpha1.ApplicationsDisabled })
	if !s.report().Released[beta] {
		t.Error("with disabled applications, the Gateway is not released")
	}
}

// Without a demand there is one list, and a token without the permission is no problem.
func TestNothingIsDemanded(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha))
	s.runFor(3 * time.Hour)
	if s.calls[access.ReadApplications] != 1 || len(s.calls) != 1 {
		t.Errorf("the requests are %v", s.calls)
	}
	s = newScenario(t)
	s.cloud.Restrict()
	s.set(gateway(alpha))
	s.runFor(3 * time.Hour)
	if s.calls[access.ReadApplications] != 1 || s.report().Forbidden != "" {
		t.Errorf("without the permission, the requests are %v, and the report says %q", s.calls, s.report().Forbidden)
	}
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.wantReason("after a demand", alpha, www, "Forbidden")
	if r := s.report(); r.Read || r.Forbidden == "" {
		t.Errorf("the report is %+v", r)
	}
}

// With applications disabled, no request is sent.
func TestDisabledSendsNothing(t *testing.T) {
	s := newScenario(t)
	s.settings(func(a *settings.Applications) { a.Mode = v1alpha1.ApplicationsDisabled })
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.runFor(3 * time.Hour)
	if len(s.calls) != 0 {
		t.Errorf("the requests are %v", s.calls)
	}
}

// With a demand, the applications are read every ten minutes and the policies every hour. After
// the start, a write of the process before can arrive late, so that one list follows soon.
func TestReads(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.runFor(time.Hour + time.Minute)
	if s.calls[access.ReadApplications] != 8 || s.calls[access.ReadPolicies] != 2 {
		t.Errorf("the requests are %v", s.calls)
	}
}

// An application is created only after a list that was sent within a minute: an application
// for a wildcard may have been made by hand.
func TestListBeforeCreation(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.runFor(2 * time.Minute)
	s.add(`{"type": "self_hosted", "name": "by hand", "domain": "*.example.com"}`)
	s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-a", app, "employees")))
	s.takeLog()
	s.run()
	s.wantLog("after a wildcard by hand")
	s.wantReason("after a wildcard by hand", alpha, app, "ApplicationExists")
}

// The verdicts contain the application as it was last read, and for which demand it was made.
func TestVerdictsHaveTheApplication(t *testing.T) {
	s := newScenario(t)
	d := demand("team-a", www, "guests", "employees")
	s.set(gateway(alpha, d))
	s.run()
	a := s.find(www)
	want := access.Application{
		Hostname: www, TeamName: "acme", AUDTag: a.AUD, Decider: d.DeciderKey(), Policies: []v1alpha1.PolicyName{"employees", "guests"}, SessionDuration: 8 * time.Hour,
	}
	v := s.verdict(alpha, www)
	if diff := cmp.Diff(&want, v.Application, cmpopts.IgnoreFields(access.Application{}, "Last")); diff != "" {
		t.Errorf("the application differs (-want +got):\n%s", diff)
	}
	if v.Application.Last.ID != provider.ApplicationID(a.ID) {
		t.Errorf("the application was last read as %+v", v.Application.Last)
	}
	if since := v.Since; since == 0 || since > s.facts.Uptime {
		t.Errorf("the verdict exists since %s", since)
	}
	s.set(gateway(alpha, ofClass(d)))
	if v := s.verdict(alpha, www); v.Application.Decider != "" || v.Reason.String() != "Pending" {
		t.Errorf("after another level decides, the verdict is %+v", v)
	}
}

// The report counts the applications, and contains them by their tags, and what policies allow.
func TestReportHasTheApplication(t *testing.T) {
	s := newScenario(t)
	d := demand("team-a", www, "guests", "employees")
	s.set(gateway(alpha, d))
	s.run()
	s.set(gateway(alpha, ofClass(d)))
	if r := s.report(); r.Tagged[s.find(www).AUD].Hostname != www || r.Managed != 1 || r.Total != 1 || !r.Read || !r.Allows["p-ci"] || r.Allows["p-blocked"] {
		t.Errorf("the report is %+v", r)
	}
}

// Plan returns what would be written, as if no delay had to pass.
func TestPlan(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", app, "employees")))
	s.run()
	s.set(gateway(alpha, ofClass(demand("team-a", star, "employees"))))
	s.set(with(gateway(beta), "team-b", www, exempt))
	s.facts.Memory = access.Observe(s.facts)
	var plan []string
	for _, w := range access.Plan(s.facts) {
		plan = append(plan, describe(w))
	}
	want := []string{"create *.example.com alpha employees", "create www.example.com beta bypass", "delete app.example.com alpha"}
	if diff := cmp.Diff(want, plan); diff != "" {
		t.Errorf("the plan differs (-want +got):\n%s", diff)
	}
}
