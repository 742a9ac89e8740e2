package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMemoryLimit: Go's collector knows of the limit, and only of one.
func TestMemoryLimit(t *testing.T) {
	limit := []any{
		map[string]any{"name": "MEMORY_LIMIT_MI", "valueFrom": map[string]any{
			"resourceFieldRef": map[string]any{"containerName": "controller", "resource": "limits.memory", "divisor": "1Mi"},
		}},
		map[string]any{"name": "GOMEMLIMIT", "value": "$(MEMORY_LIMIT_MI)000000"},
	}
	own := map[string]any{"name": "GOMEMLIMIT", "value": "400MiB"}
	other := map[string]any{"name": "NO_PROXY", "value": "10.0.0.0/8"}
	for name, test := range map[string]struct {
		set  string
		want any
	}{
		"by default":        {"", limit},
		"with a variable":   {"controller.extraEnv[0].name=NO_PROXY,controller.extraEnv[0].value=10.0.0.0/8", append(limit[:2:2], other)},
		"without a limit":   {"resources.limits.memory=null", nil},
		"without resources": {"resources=null", nil},
		"one's own":         {"controller.extraEnv[0].name=GOMEMLIMIT,controller.extraEnv[0].value=400MiB", []any{own}},
	} {
		t.Run(name, func(t *testing.T) {
			_, container := podOf(t, objects(t, render(t, "--set", test.set)))
			if diff := cmp.Diff(test.want, container["env"]); diff != "" {
				t.Errorf("the variables differ (-want +got):\n%s", diff)
			}
		})
	}
}

// A platform that hands out users of its own, as OpenShift does, refuses a pod
// that names one.
func TestUserOfThePlatform(t *testing.T) {
	pod, _ := podOf(t, objects(t, render(t, "--set", "podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null")))
	want := map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
	if diff := cmp.Diff(any(want), pod["securityContext"]); diff != "" {
		t.Errorf("the security context differs (-want +got):\n%s", diff)
	}
}

// The controller has 30 seconds of its own to end what it does, and has to
// release its Lease then.
func TestTerminationGracePeriod(t *testing.T) {
	pod, _ := podOf(t, objects(t, render(t)))
	if got := pod["terminationGracePeriodSeconds"]; got != float64(45) {
		t.Errorf("the pod has %v seconds to end", got)
	}
}
