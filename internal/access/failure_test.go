package access_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// lostOnce loses the answer to the first write with the operation.
func lostOnce(o access.Operation) func(access.Write) bool {
	done := false
	return func(w access.Write) bool {
		lost := !done && w.Operation == o
		done = done || lost
		return lost
	}
}

// After a lost answer, the write is repeated only after a list that shows whether Cloudflare
// has applied it; other hostnames do not wait.
func TestLostAnswers(t *testing.T) {
	s := newScenario(t)
	s.lose = lostOnce(access.Create)
	s.set(gateway(alpha, demand("team-a", app, "employees")))
	s.run()
	s.wantLog("after a lost creation", "create app.example.com alpha employees")
	s.wantReason("after a lost creation", alpha, app, "Pending")
	s.set(gateway(alpha, demand("team-a", app, "employees"), demand("team-a", www, "employees")))
	s.runFor(5 * time.Second)
	s.wantLog("for another hostname", "create www.example.com alpha employees")
	lists := s.calls[access.ReadApplications]
	s.runFor(20 * time.Second)
	s.wantLog("after the list")
	s.wantReason("after the list", alpha, app, "Protected")
	if s.calls[access.ReadApplications] != lists+2 { // the other one follows the start
		t.Errorf("%d lists were sent, want 2", s.calls[access.ReadApplications]-lists)
	}

	s.lose = lostOnce(access.Update)
	s.set(gateway(alpha, demand("team-a", app, "ci"), demand("team-a", www, "employees")))
	s.runFor(time.Minute)
	s.wantLog("after a lost update", "update app.example.com alpha ci tgrevoke", "revoke app.example.com alpha", "update app.example.com alpha ci")

	s.lose = lostOnce(access.Delete)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.runFor(2 * time.Minute)
	s.wantLog("after a lost deletion", "delete app.example.com alpha")

	s.lose = lostOnce(access.Revoke)
	s.set(gateway(alpha, demand("team-a", www, "ci")))
	s.runFor(2 * time.Minute)
	s.wantLog("after a lost revocation", "update www.example.com alpha ci tgrevoke", "revoke www.example.com alpha", "revoke www.example.com alpha", "update www.example.com alpha ci")
}

// A stricter change whose answer is lost needs a revocation of its own, although the tag of
// the last one remains.
func TestRevocationAfterALostUpdate(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees", "guests", "ci")))
	s.run()
	s.set(gateway(alpha, demand("team-a", www, "employees", "guests")))
	s.takeLog()
	for len(s.log) < 2 {
		s.execute(s.next())
	}
	s.wantLog("first", "update www.example.com alpha employees guests tgrevoke", "revoke www.example.com alpha")
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.lose = lostOnce(access.Update)
	s.runFor(time.Minute)
	s.wantLog("then", "update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha employees")
}

// An outage delays everything, with a growing delay, and what was read stays known.
func TestOutage(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.cloud.Fail(fake.OpApplications, errors503, errors503, errors503, errors503)
	s.runFor(10*time.Minute + 20*time.Second)
	if s.calls[access.ReadApplications] != 6 {
		t.Errorf("the requests are %v", s.calls)
	}
	s.wantReason("after the outage", alpha, www, "Protected")

	s.fail = func(access.Write) error { return errors503 }
	s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-a", app, "employees")))
	s.takeLog()
	s.runFor(5 * time.Minute)
	if n := len(s.takeLog()); n < 5 || n > 20 {
		t.Errorf("in an outage of five minutes, %d writes were sent", n)
	}
	s.wantReason("in the outage", alpha, app, "Pending")
	s.fail = nil
	s.runFor(5 * time.Minute)
	s.wantReason("after the outage", alpha, app, "Protected")
}

// Each refusal has its reason, is not repeated at once, and affects one hostname.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		err     error
		reason  string
		message string
	}{
		{provider.ErrApplicationExists, "ApplicationExists", "Cloudflare refuses to create the application, because another one exists for the hostname. Remove that one, or use its AUD tag in an entry."},
		{provider.ErrPolicyNotFound, "PolicyNotFound", "Cloudflare cannot find a policy of the application. Correct the IDs in spec.access.policies of the GatewayClass."},
		{provider.ErrNoZone, "HostnameNotPermitted", "the Cloudflare account has no active zone for the hostname, so it can have no application. Add the zone, or use another hostname."},
		{provider.ErrQuotaExceeded, "LimitExceeded", "the Cloudflare account has as many applications of Cloudflare Access as it can have. Remove applications or demands."},
		{fmt.Errorf("status 400"), "Pending", "Cloudflare rejects the application. The log of the controller has the error. The controller repeats the request."},
	} {
		t.Run(c.reason+" "+c.err.Error(), func(t *testing.T) {
			s := newScenario(t)
			s.fail = func(w access.Write) error {
				if w.Operation == access.Create && w.Hostname == www {
					return c.err
				}
				return nil
			}
			s.set(gateway(alpha, demand("team-a", www, "employees")))
			s.runFor(30 * time.Second)
			v := s.verdict(alpha, www)
			if v.Reason.String() != c.reason || v.Message != c.message {
				t.Errorf("the verdict is %q: %q", v.Reason, v.Message)
			}
			if n := len(s.takeLog()); n == 0 || n > 5 {
				t.Errorf("within 30 seconds, %d writes were sent", n)
			}
			s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-b", app, "employees")))
			if !errors.Is(c.err, provider.ErrQuotaExceeded) {
				s.runFor(2 * time.Second)
				s.wantReason("for another hostname", alpha, app, "Protected")
			}
			s.fail = nil
			s.runFor(11 * time.Minute)
			s.wantReason("later", alpha, www, "Protected")
			s.wantReason("later", alpha, app, "Protected")
		})
	}
}

// A wildcard does not wait for an exception that Cloudflare refuses.
func TestRefusedException(t *testing.T) {
	s := newScenario(t)
	s.fail = func(w access.Write) error {
		if w.Spec.Bypass {
			return provider.ErrNoZone
		}
		return nil
	}
	s.set(with(gateway(alpha, demand("team-a", star, "employees")), "team-b", www))
	s.run()
	s.wantReason("of the wildcard", alpha, star, "Protected")
	s.wantReason("of the hostname", alpha, www, "HostnameNotPermitted")
}

// A tag that was deleted is made again.
func TestDeletedTag(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	for _, tag := range s.database.Tags(account) {
		s.database.DeleteTag(account, tag)
	}
	s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-a", app, "employees")))
	s.runFor(30 * time.Second)
	s.wantReason("of a new hostname", alpha, app, "Protected")
}

// An application that another client takes over after the last list is neither changed nor deleted.
func TestTakenOverSinceTheList(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-a", app, "employees")))
	s.run()
	for _, hostname := range []string{www, app} {
		s.edit(hostname, func(fields map[string]any) { fields["tags"] = []string{} })
	}
	s.takeLog()
	s.set(gateway(alpha, demand("team-a", www, "ci")))
	s.runFor(2 * time.Minute)
	s.wantLog("after the tags were removed", "failed update www.example.com: "+provider.ErrApplicationChanged.Error())
	s.wantReason("after the tags were removed", alpha, www, "ApplicationExists")
	if s.find(app).ID == "" {
		t.Error("an application without the tag was deleted")
	}
}

// Without the permission to write, what works stays, and the report says so.
func TestForbiddenWrites(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.cloud.Restrict("Access: Apps and Policies Read")
	s.set(gateway(alpha, demand("team-a", www, "employees"), demand("team-a", app, "employees")))
	s.runFor(9 * time.Minute)
	s.wantReason("of an application that exists", alpha, www, "Protected")
	s.wantReason("of a new hostname", alpha, app, "Forbidden")
	if n := len(s.takeLog()); n > 3 {
		t.Errorf("%d writes were sent", n)
	}
	s.cloud.Restrict("Access: Apps and Policies Edit")
	s.facts.TokenVersion = "2"
	s.run()
	s.wantReason("with another token", alpha, app, "Protected")
}

// The limit of the API delays requests as long as Cloudflare asks for.
func TestRateLimit(t *testing.T) {
	s := newScenario(t)
	s.cloud.Fail(fake.OpCreateApplication, &provider.RateLimitedError{RetryAfter: time.Minute})
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	if step := s.run(); step.Action != access.Wait || step.Delay > time.Minute || step.Delay < 59*time.Second {
		t.Errorf("the step is %+v", step)
	}
	s.runFor(time.Minute + time.Second)
	s.wantReason("afterwards", alpha, www, "Protected")
}

// If Cloudflare stores other settings than the controller sends, the controller neither
// repeats the update nor revokes tokens again and again.
func TestOtherSettingsAreStored(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.normalize = func(a *provider.Application) { a.SessionDuration = time.Minute }
	s.runFor(9 * time.Minute)
	s.wantLog("within ten minutes", "create www.example.com alpha employees")
	if v := s.verdict(alpha, www); v.Reason.String() != "Pending" || v.Message != "Cloudflare stores the application with other settings than the controller has sent. Report this as a bug." {
		t.Errorf("the verdict is %+v", v)
	}
}

func TestReportSaysUntilWhenNothingCouldBeChanged(t *testing.T) {
	down := &provider.UnavailableError{Err: errors.New("down"), RetryAfter: time.Hour}
	list, write := access.Step{Action: access.ReadApplications}, access.Step{Action: access.Apply, Writes: []access.Write{{}}}
	observed := func(m access.Memory, uptime time.Duration, token string) access.Memory {
		return access.Observe(access.Facts{Memory: m, Uptime: uptime, TokenVersion: token})
	}
	m := observed(access.Memory{}, time.Second, "1")
	for _, step := range []struct {
		name  string
		after func(access.Memory) access.Memory
		want  time.Duration
	}{
		{"a start", func(m access.Memory) access.Memory { return m }, 0},
		{"an outage", func(m access.Memory) access.Memory {
			return access.Conclude(m, list, access.Result{Uptime: time.Minute, Err: down})
		}, 61 * time.Minute},
		{"a success", func(m access.Memory) access.Memory {
			return access.Conclude(m, list, access.Result{Uptime: 62 * time.Minute})
		}, 61 * time.Minute},
		{"a delayed write", func(m access.Memory) access.Memory {
			limited := &provider.RateLimitedError{RetryAfter: time.Minute}
			return access.Conclude(m, write, access.Result{Uptime: 63 * time.Minute, Writes: []access.WriteResult{{Err: limited}}})
		}, 64 * time.Minute},
		{"another token", func(m access.Memory) access.Memory { return observed(m, 65*time.Minute, "2") }, 65 * time.Minute},
	} {
		m = step.after(m)
		if got := access.NewReport(access.Facts{Memory: m, TokenVersion: "2"}).BlockedUntil; got != step.want {
			t.Errorf("after %s, blocked until %s, want %s", step.name, got, step.want)
		}
	}
}
