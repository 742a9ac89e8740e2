package access_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// adopt requests the adoption of an application for www of alpha.
func (s *scenario) adopt(id string) {
	s.facts.Adoptions = append(slices.Clone(s.facts.Adoptions), access.Adoption{
		ApplicationAdoption: v1alpha1.ApplicationAdoption{Hostname: www, ID: id, Requested: metav1.NewTime(s.facts.Clock)}, Gateway: alpha,
	})
}

// wantOutcome compares how the only request ended.
func (s *scenario) wantOutcome(result v1alpha1.AdoptionResult, message string) {
	s.t.Helper()
	if len(s.outcomes) != 1 || len(s.facts.Adoptions) != 0 {
		s.t.Fatalf("the outcomes are %+v, and %d requests remain", s.outcomes, len(s.facts.Adoptions))
	}
	if o := s.outcomes[0]; o.Result != result || !strings.Contains(o.Message, message) {
		s.t.Errorf("the outcome is %s: %q, want %s: %q", o.Result, o.Message, result, message)
	}
	s.outcomes = nil
}

// An application by hand is adopted: it gets the tag and what the demand wants, and tokens
// that were issued before are revoked if the demand is stricter.
func TestAdopt(t *testing.T) {
	s := newScenario(t)
	id := s.add(`{"type": "self_hosted", "name": "by hand", "domain": "www.example.com", "policies": ["p-guests"], "session_duration": "8h", "allowed_idps": ["a"]}`)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.wantReason("before", alpha, www, "ApplicationExists")
	s.adopt(id)
	s.run()
	s.wantLog("after the request", "update www.example.com alpha employees tgrevoke", "revoke www.example.com alpha", "update www.example.com alpha employees")
	s.wantOutcome(v1alpha1.RecordAdopted, "Before, it had the policies p-guests and the session duration 8h.")
	s.wantReason("afterwards", alpha, www, "Protected")
	if a := s.find(www); a.ID != id || a.Name != "by hand" {
		t.Errorf("the application is %+v", a)
	}
}

// The result of an adoption tells which policies have gone.
func TestAdoptAnApplicationWithPoliciesOfItsOwn(t *testing.T) {
	s := newScenario(t)
	id := s.add(`{"type": "self_hosted", "name": "by hand", "domain": "www.example.com", "session_duration": "30m", "policies": [{"name": "all", "decision": "allow", "include": [{"everyone": {}}]}]}`)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.adopt(id)
	s.run()
	s.wantOutcome(v1alpha1.RecordAdopted, "Before, it had policies of its own (1), which no longer exist, and the session duration 30m.")
}

// After a lost key, the applications with the demands' fields are adopted without a
// revocation, and the tags of the lost key go.
func TestAdoptAfterALostKey(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.demandTokens(alpha, www)
	s.facts.Identity.Key = []byte("another key another key another!")
	s.restart()
	s.run()
	v := s.verdict(alpha, www)
	if v.Reason.String() != "ApplicationExists" || v.Application == nil || v.Application.AUDTag != s.find(www).AUD || v.Application.Decider != "" {
		t.Errorf("the verdict is %+v", v)
	}
	s.takeLog()
	s.adopt(s.find(www).ID)
	s.run()
	s.wantLog("after the request", "update www.example.com alpha employees")
	s.wantOutcome(v1alpha1.RecordAdopted, "To undo the adoption, remove the tag tg")
	if tags := s.find(www).Tags; len(tags) != 1 {
		t.Errorf("the tags are %q", tags)
	}
}

// Each reason to refuse a request is reported.
func TestRefusedAdoptions(t *testing.T) {
	const byHand = `{"type": "self_hosted", "name": "by hand", "domain": "www.example.com"`
	demands := func(s *scenario) { s.set(gateway(alpha, demand("team-a", www, "employees"))) }
	for name, c := range map[string]struct {
		application string
		setup       func(*scenario)
		message     string
	}{
		"another domain":   {byHand + `, "self_hosted_domains": ["www.example.com", "other.example.com/admin"]}`, demands, "The application also protects other.example.com/admin."},
		"another hostname": {`{"type": "self_hosted", "name": "by hand", "domain": "other.example.com"}`, demands, "The application does not cover the hostname. It covers other.example.com."},
		"a path only":      {`{"type": "self_hosted", "name": "by hand", "domain": "www.example.com/admin"}`, demands, "The application does not cover the hostname. It covers www.example.com/admin."},
		"another type":     {`{"type": "ssh", "name": "by hand", "domain": "www.example.com"}`, demands, "The application has the type ssh."},
		"no demand":        {byHand + `}`, func(s *scenario) { s.set(gateway(alpha)) }, "Gateway team-a/alpha does not demand an application for the hostname."},
		"disabled applications": {byHand + `}`, func(s *scenario) {
			s.settings(func(a *settings.Applications) { a.Mode = v1alpha1.ApplicationsDisabled })
		}, "No GatewayClass of the account manages applications."},
		"no Gateway": {byHand + `}`, func(*scenario) {}, "The Tunnel has no Gateway."},
		"a paused Gateway": {byHand + `}`, func(s *scenario) {
			s.set(in(gateway(alpha, demand("team-a", www, "employees")), ownership.Frozen))
		}, "The application cannot be adopted while the Gateway is not accepted or paused"},
		"another Gateway's demand": {byHand + `}`, func(s *scenario) {
			s.set(gateway(alpha, demand("team-a", www, "employees")))
			s.set(gateway(beta, ofClass(demand("team-b", www, "ci"))))
		}, "Another Gateway demands another application for the hostname, and precedes."},
		"no permission": {byHand + `}`, func(s *scenario) {
			d := demand("team-a", www, "employees")
			d.Permitted = false
			s.set(gateway(alpha, d))
		}, "The annotation tunnelgateway.dev/hostnames of namespace team-a does not permit the hostname"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			id := s.add(c.application)
			c.setup(s)
			s.adopt(id)
			s.run()
			if log := s.takeLog(); slices.ContainsFunc(log, func(line string) bool { return !strings.HasPrefix(line, "create") }) {
				t.Errorf("the writes are %q", log)
			}
			s.wantOutcome(v1alpha1.AdoptionRefused, c.message)
		})
	}
}

// A request that cannot be decided about waits for an hour, and one for an application that
// has gone is refused.
func TestLateAdoptions(t *testing.T) {
	s := newScenario(t)
	s.set(in(gateway(alpha), ownership.Unknown))
	s.adopt("a")
	s.runFor(59 * time.Minute)
	if len(s.outcomes) != 0 {
		t.Errorf("the outcomes are %+v", s.outcomes)
	}
	s.runFor(2 * time.Minute)
	s.wantOutcome(v1alpha1.AdoptionRefused, "The request is older than an hour. Repeat it.")
	s.set(gateway(alpha, demand("team-a", www, "employees")))
	s.run()
	s.adopt("gone")
	s.run()
	s.wantOutcome(v1alpha1.AdoptionRefused, "The application no longer exists. Read it again, and repeat the request.")
}
