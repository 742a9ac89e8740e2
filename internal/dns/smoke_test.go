package dns_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSmoke(t *testing.T) {
	s := newScenario(t)
	s.set(gateway(alpha, "www.example.com", "*.example.com"))
	step := s.run()
	t.Log(step, s.log, s.calls, s.report())
	s.set(gateway(alpha, "*.example.com"))
	s.set(gateway(beta, "www.example.com"))
	s.runFor(5 * time.Minute)
	t.Log(s.log, s.report().Gateways)
	s.runFor(6 * time.Minute)
	t.Log(s.log, s.report().Gateways)
	s.set(gateway(beta))
	s.runFor(12 * time.Minute)
	t.Log(s.log, s.calls)
	if diff := cmp.Diff("", s.target("www.example.com")); diff != "" {
		t.Error(diff)
	}
}
