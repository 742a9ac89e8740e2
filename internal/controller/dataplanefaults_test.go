package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// Envoys that a change adds keep their streams while the settings are not valid: an
// Envoy that restarts needs the routes.
func TestEnvoysKeepTheirStreamsWhileSettingsAreNotValid(t *testing.T) {
	h := newRulesHarness(t)
	h.selectDataPlane(v1alpha1.DataPlaneEnvoy)
	h.reconcileFor(time.Minute)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Connector = &v1alpha1.Connector{Enabled: ptr.To(false)} })
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneAddingEnvoy, false)
	if len(h.xds.removed) > 0 {
		t.Error("the streams of the Envoys ended")
	}
}

// A Gateway's ingress rules do not wait for an Envoy that acknowledges nothing.
func TestIngressRulesDoNotWaitForALateEnvoy(t *testing.T) {
	h := newRulesHarness(t)
	h.selectDataPlane(v1alpha1.DataPlaneEnvoy)
	h.reconcileFor(time.Minute)
	h.xds.state.Late, h.xds.unacknowledged = true, true
	h.setHostname("b.example.com")
	h.reconcileOnce()
	if got := h.servedHostname(); got != "b.example.com" {
		t.Errorf("the ingress rules serve %q, want b.example.com", got)
	}
}

// While a change to ingress rules waits for late writes, Envoy is ready: no Access
// settings change.
func TestEnvoyIsReadyWhileIngressRulesAreConfirmed(t *testing.T) {
	h := newEnvoyHarness(t)
	h.rollOut()
	h.cloud.FailAfter(fakeprovider.OpConfigure, context.DeadlineExceeded)
	h.selectDataPlane(v1alpha1.DataPlaneIngressRules)
	h.reconcileFor(5 * time.Second)
	h.wantDataPlane(v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneSwitching, false)
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "True Ready"); problem != "" {
		t.Error(problem)
	}
}

// A rollout that the cache does not show yet can still start pods without Envoy.
func TestOutdatedDeploymentDoesNotCountAsRolledOut(t *testing.T) {
	h := newEnvoyHarness(t)
	h.rollOut()
	before := h.deployment()
	h.selectDataPlane(v1alpha1.DataPlaneIngressRules)
	h.reconcileFor(time.Minute)
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy, false)

	h.connectors.client = interceptor.NewClient(h.client(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
			if d, ok := object.(*appsv1.Deployment); ok {
				before.DeepCopyInto(d)
				return nil
			}
			return c.Get(ctx, key, object, o...)
		},
	})
	h.cloud.ResetCalls()
	h.selectDataPlane(v1alpha1.DataPlaneEnvoy)
	h.reconcileOnce()
	h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneAddingEnvoy, false)
}

// Envoy certificates are renewed until the last Envoy has stopped, because a new
// certificate authority waits for them.
func TestCertificatesAreRenewedWhileEnvoyIsRemoved(t *testing.T) {
	for _, isPaused := range []string{"false", "true"} {
		h := newEnvoyHarness(t)
		h.rollOut()
		h.selectDataPlane(v1alpha1.DataPlaneIngressRules)
		h.reconcileFor(time.Minute)
		h.wantDataPlane(v1alpha1.DataPlaneIngressRules, v1alpha1.DataPlaneRemovingEnvoy, false)
		h.annotate(v1alpha1.PausedAnnotation, isPaused)
		h.reconcileFor(time.Minute)
		h.identities.written = nil // the certificate is due
		h.reconcileOnce()
		if !slices.Contains(h.identities.written, h.tunnelObject().UID) {
			t.Errorf("paused: %s: the certificate was not renewed", isPaused)
		}
	}
}
