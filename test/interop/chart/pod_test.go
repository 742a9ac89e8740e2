package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGoMemoryLimitFollowsTheContainerLimit checks the variable GOMEMLIMIT, which makes
// Go's garbage collector respect the container's memory limit.
func TestGoMemoryLimitFollowsTheContainerLimit(t *testing.T) {
	address := map[string]any{"name": "TUNNEL_GATEWAY_POD_IP", "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": "status.podIP"}}}
	limit := []any{
		address,
		map[string]any{"name": "MEMORY_LIMIT_MI", "valueFrom": map[string]any{
			"resourceFieldRef": map[string]any{"containerName": "controller", "resource": "limits.memory", "divisor": "1Mi"},
		}},
		map[string]any{"name": "GOMEMLIMIT", "value": "$(MEMORY_LIMIT_MI)000000"},
	}
	custom := map[string]any{"name": "GOMEMLIMIT", "value": "400MiB"}
	proxy := map[string]any{"name": "NO_PROXY", "value": "10.0.0.0/8"}
	for name, test := range map[string]struct {
		set  string
		want []any
	}{
		"by default":             {"", limit},
		"with another variable":  {"controller.extraEnv[0].name=NO_PROXY,controller.extraEnv[0].value=10.0.0.0/8", append(limit[:3:3], proxy)},
		"without a memory limit": {"resources.limits.memory=null", []any{address}},
		"without resources":      {"resources=null", []any{address}},
		"with GOMEMLIMIT set":    {"controller.extraEnv[0].name=GOMEMLIMIT,controller.extraEnv[0].value=400MiB", []any{address, custom}},
	} {
		t.Run(name, func(t *testing.T) {
			_, container := controllerPod(t, objects(t, render(t, "--set", test.set)))
			if diff := cmp.Diff(any(test.want), container["env"]); diff != "" {
				t.Errorf("the variables differ (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlatformCanChooseTheUser removes the user and the group from the pod.
// Platforms that assign a user to each pod, like OpenShift, reject a pod that names
// one.
func TestPlatformCanChooseTheUser(t *testing.T) {
	pod, _ := controllerPod(t, objects(t, render(t, "--set", "podSecurityContext.runAsUser=null,podSecurityContext.runAsGroup=null")))
	want := map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
	if diff := cmp.Diff(any(want), pod["securityContext"]); diff != "" {
		t.Errorf("the security context differs (-want +got):\n%s", diff)
	}
}

// TestPodHasTimeToShutDown checks the grace period: the controller takes up to 30
// seconds to finish its work, and then releases its Lease.
func TestPodHasTimeToShutDown(t *testing.T) {
	pod, _ := controllerPod(t, objects(t, render(t)))
	if got := pod["terminationGracePeriodSeconds"]; got != float64(45) {
		t.Errorf("terminationGracePeriodSeconds is %v, want 45", got)
	}
}
