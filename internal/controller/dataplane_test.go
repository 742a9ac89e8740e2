package controller

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// The controller does not run Envoy: it does not accept the Gateway, and the tunnel keeps
// its configuration.
func TestDataPlaneEnvoyIsNotAccepted(t *testing.T) {
	h := newServedHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DataPlane, s.Connector = new(v1alpha1.DataPlaneEnvoy), nil
	})
	h.setHostname("b.example.com")
	h.reconcileFor(driftInterval / 2)
	const want = "spec.dataPlane of the GatewayClass's TunnelConfiguration is Envoy, which this version of the controller does not run. Set it to IngressRules."
	accepted := meta.FindStatusCondition(h.gateway().Status.Conditions, "Accepted")
	if accepted == nil || accepted.Status != "False" || accepted.Reason != "InvalidParameters" || accepted.Message != want {
		t.Errorf("condition Accepted is %+v, want InvalidParameters with the message %q", accepted, want)
	}
	if got := h.servedHostname(); got != "a.example.com" {
		t.Errorf("the tunnel serves %s, want a.example.com as before", got)
	}
}
