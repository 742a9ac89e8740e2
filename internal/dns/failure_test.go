package dns_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/dns"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// The delays after errors grow up to five minutes, and a success ends them.
func TestBackoff(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	for range 12 {
		s.cloud.Fail("Zones", errors503)
	}
	var delays []time.Duration
	for range 12 {
		step := s.run()
		delays = append(delays, step.Delay)
		s.wait(step.Delay)
	}
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	want := []time.Duration{
		seconds(1), seconds(2), seconds(4), seconds(8), seconds(16), seconds(32), seconds(64), seconds(128), seconds(256), seconds(300), seconds(300), seconds(300),
	}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("the delays differ (-want +got):\n%s", diff)
	}
	s.run()
	s.wantLog("afterwards", "create www.example.com alpha")
}

// A delay that the API asks for is kept.
func TestRequestedDelay(t *testing.T) {
	for _, err := range []error{
		&provider.RateLimitedError{RetryAfter: 42 * time.Second, Budget: true},
		&provider.UnavailableError{Err: errors.New("status 503"), RetryAfter: 42 * time.Second},
	} {
		s := newScenario(t)
		s.cloud.Fail("Records", err)
		if step := s.run(); step.Action != dns.Wait || step.Delay != 42*time.Second {
			t.Errorf("after %v, the step is %s for %s, want to wait 42s", err, step.Action, step.Delay)
		}
	}
}

// After a batch that was rejected before it changed anything, the records need not be read
// again.
func TestRateLimitedBatch(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.cloud.Fail("Apply", &provider.RateLimitedError{RetryAfter: time.Second})
	s.runFor(5 * time.Second)
	if n := len(s.cloud.Calls("Records")); n != 1 || s.target(www) == "" {
		t.Errorf("there are %d reads, want 1, and the record leads to %q", n, s.target(www))
	}
}

// The quota and the certificates are optional: errors that concern only them do not stop
// changes.
func TestOptionalReads(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.cloud.Fail("Usage", errors503)
	s.cloud.Fail("CertificateHosts", errors503)
	s.runFor(10 * time.Second)
	s.wantLog("after the errors", "create www.example.com alpha")
	if f := s.finding(alpha, www); f.Certificate != dns.CertificateCovers {
		t.Errorf("the certificate of a name one level below the apex is %v", f.Certificate)
	}
}

// A record that vanishes between the read and the edit is created again at once.
func TestRecordVanishes(t *testing.T) {
	s := newScenario(t)
	managed(s, www, alphaAt, unproxied)
	s.set(gateway(alpha, www))
	for step := s.next(); step.Action != dns.Apply; step = s.next() {
		s.execute(step)
	}
	if err := s.database.Delete(s.id, s.database.Records(s.id)[0].ID); err != nil {
		t.Fatal(err)
	}
	s.run()
	s.wantLog("afterwards", "failed: DNS record not found", "create www.example.com alpha")
}

// Cloudflare refuses a record although no read shows another one. The attempt is repeated
// once, and then every ten minutes.
func TestRefusedRecord(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, www))
	s.cloud.Fail("Apply", provider.ErrRecordExists, provider.ErrRecordExists, provider.ErrRecordExists)
	s.run()
	s.wantLog("at first", "failed: a DNS record with this name already exists", "failed: a DNS record with this name already exists")
	want := "Cloudflare refuses to create the record, because another one exists. Delete it, or exclude the hostname."
	if f := s.finding(alpha, www); f.Message != want {
		t.Errorf("the message is %q, want %q", f.Message, want)
	}
	s.runFor(time.Hour)
	s.wantLog("later", "failed: a DNS record with this name already exists", "create www.example.com alpha")
}

// Before every Gateway is known, nothing is created below a wildcard that leads to a tunnel
// without a known Gateway.
func TestWildcardOfAnUnseenTunnel(t *testing.T) {
	for name, add := range map[string]func(*scenario){
		"with a mark": func(s *scenario) { managed(s, star, betaAt) },
		"without a mark": func(s *scenario) {
			s.settings(func(d *settings.DNS) { d.RequiresPermission = true })
			s.add(star, "CNAME", betaAt)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScenario(t)
			s.facts.GatewaysKnown = false
			add(s)
			s.set(gateway(alpha, www))
			s.runFor(time.Hour)
			s.wantLog("before")
			want := "a wildcard leads to another Gateway, which may serve the hostname. The controller creates the record when it knows that this Gateway does not."
			if f := s.finding(alpha, www); f.Message != want {
				t.Errorf("the message is %q, want %q", f.Message, want)
			}
			s.facts.GatewaysKnown = true
			s.run()
			s.wantLog("afterwards", "create www.example.com alpha")
		})
	}
}

func TestReportSaysUntilWhenNothingCouldBeChanged(t *testing.T) {
	read := dns.Step{Action: dns.ReadZone}
	conclude := func(m dns.Memory, uptime time.Duration, err error) dns.Memory {
		return dns.Conclude(m, read, dns.Result{Uptime: uptime, Err: err})
	}
	observed := func(m dns.Memory, uptime time.Duration, token string) dns.Memory {
		return dns.Observe(dns.Facts{Memory: m, Uptime: uptime, TokenVersion: token})
	}
	m := observed(dns.Memory{}, time.Second, "1")
	for _, step := range []struct {
		name  string
		after func(dns.Memory) dns.Memory
		want  time.Duration
	}{
		{"a start", func(m dns.Memory) dns.Memory { return m }, 0},
		{"an outage", func(m dns.Memory) dns.Memory {
			return conclude(m, time.Minute, &provider.UnavailableError{Err: errors.New("down"), RetryAfter: time.Hour})
		}, 61 * time.Minute},
		{"a success", func(m dns.Memory) dns.Memory { return conclude(m, 62*time.Minute, nil) }, 61 * time.Minute},
		{"a refused token", func(m dns.Memory) dns.Memory { return conclude(m, 63*time.Minute, provider.ErrUnauthorized) }, 61 * time.Minute},
		{"another token", func(m dns.Memory) dns.Memory { return observed(m, 64*time.Minute, "2") }, 64 * time.Minute},
		{"an unknown error", func(m dns.Memory) dns.Memory { return conclude(m, 65*time.Minute, errors.New("unknown zone")) }, 64 * time.Minute},
	} {
		m = step.after(m)
		if got := dns.NewReport(dns.Facts{Memory: m, TokenVersion: "2"}).BlockedUntil; got != step.want {
			t.Errorf("after %s, blocked until %s, want %s", step.name, got, step.want)
		}
	}
}
