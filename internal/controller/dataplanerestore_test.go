package controller

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// converge completes the rollouts in a data plane change.
func (h *harness) converge() {
	h.t.Helper()
	for range 3 {
		h.reconcileFor(2 * time.Minute)
		if h.deployment() != nil {
			h.rollOut()
		}
	}
	h.reconcileFor(2 * time.Minute)
}

// A Tunnel that is deleted, or restored from a backup in any phase, reaches the data
// plane in the settings.
func TestRestoredTunnelReachesTheConfiguredDataPlane(t *testing.T) {
	rules, envoy := v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneEnvoy
	type record struct {
		plane, to v1alpha1.DataPlane
		phase     v1alpha1.DataPlaneChangePhase
	}
	records := []record{
		{plane: rules}, {plane: envoy}, {},
		{rules, envoy, v1alpha1.DataPlaneAddingEnvoy}, {rules, envoy, v1alpha1.DataPlaneSwitching},
		{envoy, rules, v1alpha1.DataPlaneSwitching}, {rules, rules, v1alpha1.DataPlaneRemovingEnvoy},
	}
	for _, actual := range []v1alpha1.DataPlane{rules, envoy} {
		for _, wanted := range []v1alpha1.DataPlane{rules, envoy} {
			for i, r := range records {
				restarts := i%2 == 0
				h := newRulesHarness(t)
				h.selectDataPlane(actual)
				h.converge()
				restored := h.tunnelObject()
				if restarts { // garbage collection
					h.stopPods()
					h.delete(h.deployment())
				}
				h.delete(restored)
				restored.ResourceVersion, restored.UID = "", "restored"
				restored.Status.DataPlane, restored.Status.DataPlaneChange = r.plane, nil
				if r.phase != "" {
					restored.Status.DataPlaneChange = &v1alpha1.DataPlaneChange{To: r.to, Phase: r.phase}
				}
				status := restored.Status
				h.create(restored)
				restored.Status = status
				if err := h.kube.Status().Update(t.Context(), restored); err != nil {
					t.Fatal(err)
				}
				h.selectDataPlane(wanted)
				if restarts {
					h.restart()
				}
				h.converge()
				after := h.tunnelObject().Status
				if after.DataPlane != wanted || after.DataPlaneChange != nil {
					t.Errorf("%s, restored %+v, wanted %s, restarts %t: %s %+v", actual, r, wanted, restarts, after.DataPlane, ptr.Deref(after.DataPlaneChange, v1alpha1.DataPlaneChange{}))
				}
				h.wantDataPlane(wanted, "", wanted == envoy)
				h.wantRunsEnvoy(wanted == envoy)
			}
		}
	}
}
