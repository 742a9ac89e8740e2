package plan_test

import (
	"strings"
	"testing"
)

func TestPlanShowsHostnamesThatAreNotPermitted(t *testing.T) {
	out := printed(t, buildPlan(t, read(t, "",
		"../gateway/testdata/hostname-annotation-invalid-entries.in.yaml"), now))
	for _, want := range []string{
		"ListenerSet team-a/set listener upper: HostnameNotPermitted: ",
		`ListenerSet team-a/set: The annotation tunnelgateway.dev/hostnames of namespace "team-a" has entries that are not valid`,
		`"reason": "HostnameNotPermitted"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan does not contain %q:\n%s", want, out)
		}
	}
	out = printed(t, buildPlan(t, read(t, "", "../gateway/testdata/hostname-not-permitted-route.in.yaml"), now))
	for _, want := range []string{
		`HTTPRoute team-a/partly on Gateway infra/shared: not under every hostname: it may not use "www.team-b.example.com"`,
		"HTTPRoute team-a/without-hostnames on Gateway infra/shared: HostnameNotPermitted: ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the plan does not contain %q:\n%s", want, out)
		}
	}
}
