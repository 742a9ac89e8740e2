package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

func ready(hostnames ...string) access.Verdicts {
	v := access.Verdicts{}
	for _, hostname := range hostnames {
		v[hostname] = access.Verdict{Reason: conditions.ReasonProtected, Application: &access.Application{Hostname: hostname}}
	}
	return v
}

func namesOf(v access.Verdicts) string {
	var names []string
	for hostname := range v {
		names = append(names, hostname)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestReadyApplicationsAreShownTogether(t *testing.T) {
	var s shownVerdicts
	for _, step := range []struct {
		name   string
		uptime time.Duration
		write  time.Duration // when the configuration was last written; 0 for never
		all    access.Verdicts
		shown  string
		hidden time.Duration
	}{
		{"the first one", 100 * time.Second, 0, ready("a"), "a", 0},
		{"another one soon after", 103 * time.Second, 101 * time.Second, ready("a", "b"), "a", 8 * time.Second},
		{"a third one", 105 * time.Second, 101 * time.Second, ready("a", "b", "c"), "a", 6 * time.Second},
		{"ten seconds after the write", 111 * time.Second, 101 * time.Second, ready("a", "b", "c"), "a b c", 0},
		{"one after a write for another reason", 130 * time.Second, 128 * time.Second, ready("a", "b", "c", "d"), "a b c", 8 * time.Second},
		{"a write follows", 139 * time.Second, 138 * time.Second, ready("a", "b", "c", "d"), "a b c", 9 * time.Second},
		{"and another one", 149 * time.Second, 148 * time.Second, ready("a", "b", "c", "d"), "a b c", time.Second},
		{"it waits twenty seconds at most", 150 * time.Second, 148 * time.Second, ready("a", "b", "c", "d"), "a b c d", 0},
		{"one that ends is no longer shown", 151 * time.Second, 139 * time.Second, ready("b"), "b", 0},
	} {
		write := &step.write
		if step.write == 0 {
			write = nil
		}
		shown, hidden := s.next(step.all, write, step.uptime)
		if namesOf(shown) != step.shown || hidden != step.hidden {
			t.Errorf("%s: %q is shown, and the rest for %s; want %q and %s", step.name, namesOf(shown), hidden, step.shown, step.hidden)
		}
	}
}

// Everything that closes a hostname is shown at once, even while others wait.
func TestOtherVerdictsAreShownAtOnce(t *testing.T) {
	var s shownVerdicts
	s.next(ready("a"), nil, time.Second)
	all := ready("a", "b")
	all["a"] = access.Verdict{Reason: conditions.ReasonOverridden, Application: all["a"].Application}
	all["c"] = access.Verdict{Reason: conditions.ReasonForbidden}
	shown, hidden := s.next(all, nil, 2*time.Second)
	if shown["a"].Reason != conditions.ReasonOverridden || shown["c"].Reason != conditions.ReasonForbidden || hidden == 0 {
		t.Errorf("%+v is shown, and the rest for %s", shown, hidden)
	}
	if _, ok := shown["b"]; ok {
		t.Error("an application that became ready is shown too early")
	}
}
