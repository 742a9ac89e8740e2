package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// rollBack gives the Deployment the template, like kubectl rollout undo.
func (h *harness) rollBack(template corev1.PodTemplateSpec) {
	h.t.Helper()
	d := h.deployment()
	d.Spec.Template, d.Generation = template, d.Generation+1
	if err := h.kube.Update(h.t.Context(), d, client.FieldOwner("kubectl")); err != nil {
		h.t.Fatal(err)
	}
}

// Connectors without Envoy, to which a user has rolled back, get Envoy again at once.
func TestRollbackToConnectorsWithoutEnvoyIsReverted(t *testing.T) {
	h := newRulesHarness(t)
	before := h.deployment().Spec.Template
	h.selectDataPlane(v1alpha1.DataPlaneEnvoy)
	h.reconcileFor(time.Minute)
	h.rollOut()
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneEnvoy, "", true)
	h.rollBack(before)
	h.wantRunsEnvoy(false)
	h.reconcileOnce()
	h.wantRunsEnvoy(true)
}
