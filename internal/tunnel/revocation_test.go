package tunnel

import (
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// revoking returns a tunnel's facts when its only rule is revoked while the bucket for
// writes is empty.
func revoking() Facts {
	f := serving()
	c := configurationFor("other.example.com")
	d := *f.Desired
	d.Configuration, d.Hash, d.Updates, d.Revocations = &c, c.Hash(), UpdateLimit{Burst: 3, Interval: 20 * time.Second}, revocationLimit
	f.Desired, f.ChangedNamespaces = &d, []string{"team-a"}
	f.Memory.Updates = Bucket{Spent: 3, Since: At(f.Uptime - 5*time.Second)}
	return f
}

// after returns the facts after a write that succeeds.
func (f Facts) after(s Step) Facts {
	if s.Record != nil {
		object := f.Object.DeepCopy()
		object.Status = *s.Record
		f.Object = object
	}
	f.Memory = Conclude(f.Memory, s, Result{Uptime: f.Uptime, Configuration: *s.Configuration, Version: f.Memory.Remote.Configuration.Version + 1})
	return f
}

func TestRevocationDoesNotWaitForTheBucket(t *testing.T) {
	f := revoking()
	last := f.Memory.Remote.Configuration.Hash
	s := Decide(f)
	if s.Action != Configure || !s.Revokes || s.Record == nil || s.Record.Configuration != (v1alpha1.ConfigurationRecord{Hash: s.Hash, Previous: last}) {
		t.Fatalf("got %+v, want a write of the restricted configuration that is recorded", s)
	}
	if got := *s.Configuration; len(got.Ingress) != 1 || got.Ingress[0].Service != "http_status:404" {
		t.Errorf("the restricted configuration is %+v", got)
	}
}

func TestDesiredConfigurationFollowsTheRevocation(t *testing.T) {
	f := revoking()
	s := Decide(f)
	f = f.after(s)
	if s := Decide(f); s.Action != Wait || s.Delay != 15*time.Second {
		t.Errorf("got %+v, want a wait for the desired configuration", s)
	}
	if o := Programmed(f); o.State != OutcomePending || o.Reason != conditions.ReasonConfigurationThrottled || !strings.HasSuffix(o.Message, "get an error status.") {
		t.Errorf("the outcome is %+v", o)
	}
	restricted := s.Hash
	f.Uptime += 15 * time.Second
	if s := Decide(f); s.Action != Configure || s.Revokes || s.Hash != f.Desired.Hash || s.Record.Configuration.Previous != restricted {
		t.Errorf("got %+v, want a write of the desired configuration", s)
	}
}

func TestRestrictedConfigurationIsKnownAfterRestart(t *testing.T) {
	f := revoking()
	s := Decide(f)
	for name, remote := range map[string]provider.Configuration{"written": *s.Configuration, "not written": f.Memory.Remote.Configuration.Configuration} {
		crashed := f.after(s)
		crashed.Memory = Memory{}
		crashed.Memory.Remote.Configuration = RemoteConfiguration{Known: true, Configuration: remote, Hash: remote.Hash(), Version: 8, Settled: true, NextRead: crashed.Uptime + time.Minute}
		if next := Decide(crashed); next.Action != Configure || next.Hash != f.Desired.Hash || next.ExternalChange != 0 {
			t.Errorf("%s: got %+v, want a write of the desired configuration", name, next)
		}
	}
}

func TestRevocationWaitsForItsOwnBucket(t *testing.T) {
	f := revoking()
	f.Memory.Revocations.Bucket = Bucket{Spent: revocationLimit.Burst, Since: At(f.Uptime - 2*time.Second)}
	if s := Decide(f); s.Action != Wait || s.Delay != 3*time.Second || s.Problem.Reason != conditions.ReasonConfigurationThrottled {
		t.Errorf("got %+v, want a wait of 3s", s)
	}
}

func TestRejectedConfigurationDoesNotDelayRevocation(t *testing.T) {
	f := revoking()
	f.Memory.Updates = Bucket{}
	rejection := &provider.InvalidError{Rule: 0, Message: "no"}
	f.Memory = Conclude(f.Memory, Decide(f), Result{Uptime: f.Uptime, Err: rejection})
	f.Memory.Remote.Configuration.Known = true // it was read again
	f.Memory.Push = Pace{}
	s := Decide(f)
	if s.Action != Configure || !s.Revokes {
		t.Fatalf("got %+v, want a revocation after the desired configuration was rejected", s)
	}
	f.Memory.Updates = Bucket{Spent: 3, Since: At(f.Uptime)}
	f.Memory = Conclude(f.Memory, s, Result{Uptime: f.Uptime, Err: rejection})
	f.Memory.Remote.Configuration.Known, f.Memory.Push = true, Pace{}
	if s := Decide(f); s.Action != Wait || s.Delay <= 0 {
		t.Errorf("got %+v, want a wait after the restricted configuration was rejected", s)
	}
}

func TestNamespaceSpendsHalfOfTheRevocations(t *testing.T) {
	var r Revocations
	count := func(duration time.Duration, namespaces ...string) int {
		n, start := 0, time.Hour
		for uptime := start; uptime < start+duration; uptime += 100 * time.Millisecond {
			if r.wait(uptime, revocationLimit, namespaces) == 0 {
				r, n = r.spend(uptime, revocationLimit, namespaces), n+1
			}
		}
		return n
	}
	if n := count(10*time.Minute, "team-a"); n != 5+59 {
		t.Errorf("a namespace revoked %d times within ten minutes, want 64", n)
	}
	now := time.Hour + 10*time.Minute
	if wait := r.wait(now, revocationLimit, []string{"team-a", "team-b"}); wait != 0 {
		t.Errorf("another namespace waits for %s", wait)
	}
	r = Revocations{}
	if n := count(10*time.Minute, "team-a", "team-b"); n != 5+59 {
		t.Errorf("two namespaces whose objects change together revoked %d times within ten minutes, want 64", n)
	}
	r = Revocations{}
	if n := count(10 * time.Minute); n != 10+119 {
		t.Errorf("changes that belong to no namespace were revoked %d times within ten minutes, want 129", n)
	}
	r = r.spend(3*time.Hour, revocationLimit, []string{"team-c"})
	if len(r.Shares) != 1 {
		t.Errorf("the shares contain namespaces that have spent nothing: %+v", r.Shares)
	}
}
