package controller

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// requestReconcile sets the annotation on the Gateway's Tunnel that requests a
// reconcile.
func (h *harness) requestReconcile(value string) {
	h.t.Helper()
	object := &v1alpha1.Tunnel{}
	h.change(controllerNamespace, tunnel.ObjectName(h.key.NamespacedName), object, func() { metav1.SetMetaDataAnnotation(&object.ObjectMeta, v1alpha1.ReconcileAnnotation, value) })
}

// wantReconciled checks which requested reconcile the Tunnel records.
func (h *harness) wantReconciled(want string) {
	h.t.Helper()
	if got := h.tunnelObject().Status.Reconciled; got != want {
		h.t.Errorf("status.reconciled = %q, want %q", got, want)
	}
}

func TestRequestedReconcileReadsTheTunnelAgain(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.cloud.ResetCalls()

	h.requestReconcile("1")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpToken, fakeprovider.OpConnections)
	h.wantReconciled("1")

	h.reconcileOnce()
	h.wantCalls() // the value has not changed
	h.restart()
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfiguration) // as after every start

	h.cloud.SetConfiguration(h.tunnelID(), provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:418"}}})
	h.requestReconcile("2")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConfigure, fakeprovider.OpToken, fakeprovider.OpConnections)
	h.wantReconciled("2")
	h.wantEvent("DriftRepaired")
}

func TestRequestedReconcileEndsBackoffs(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	down := &provider.UnavailableError{Err: errors.New("connection refused")}
	h.cloud.Fail(fakeprovider.OpConfigure, down)
	h.cloud.Fail(fakeprovider.OpConfiguration, down, down, down, down, down)
	h.setHostname("b.example.com")
	h.reconcileFor(40 * time.Second)
	h.wantReady(v1alpha1.TunnelServing, conditions.ReasonCloudflareUnavailable)
	if h.servedHostname() != "a.example.com" {
		t.Fatal("the change was written")
	}
	h.requestReconcile("now")
	h.reconcileOnce()
	if got := h.servedHostname(); got != "b.example.com" {
		t.Errorf("the tunnel serves %s, want b.example.com without a further wait", got)
	}
	h.wantReconciled("now")
}

func TestRequestedReconcileIsNotRecordedBeforeItsReadsSucceed(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.cloud.Fail(fakeprovider.OpConfiguration, &provider.UnavailableError{Err: errors.New("connection refused")})
	h.requestReconcile("1")
	h.reconcileOnce()
	h.wantReconciled("")
	h.reconcileFor(2 * time.Second)
	h.wantReconciled("1")
	if applied := conditions.TypeTunnelConfigurationApplied.Find(h.tunnelObject().Status.Conditions); applied == nil || applied.Status != metav1.ConditionTrue {
		t.Errorf("ConfigurationApplied is %+v, want True", applied)
	}
}

func TestPausedTunnelIsReadAndNotWritten(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileOnce()
	h.cloud.SetConfiguration(h.tunnelID(), provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:418"}}})
	h.cloud.ResetCalls()
	h.requestReconcile("1")
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfiguration, fakeprovider.OpConnections)
	h.wantReconciled("1")
	h.wantReady(v1alpha1.TunnelServing, conditions.ReasonPaused)
}

func TestRetainedTunnelRecordsARequestedReconcile(t *testing.T) {
	h := newHarness(t)
	retain := v1alpha1.DeletionPolicyRetain
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Tunnel = &v1alpha1.TunnelSettings{DeletionPolicy: &retain}
	})
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(time.Minute)
	h.wantReady(v1alpha1.TunnelRetained, conditions.ReasonRetained)
	h.cloud.ResetCalls()
	h.requestReconcile("1")
	h.reconcileOnce()
	h.wantCalls()
	h.wantReconciled("1")
}

func TestAnnotationThatChangesInALoopCostsFewRequests(t *testing.T) {
	// Each Tunnel handles one value in ten seconds.
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.cloud.ResetCalls()
	for i := range 60 {
		h.requestReconcile(time.Duration(i).String())
		h.reconcileFor(time.Second)
	}
	if got := len(h.cloud.Calls()); got != 21 {
		t.Errorf("60 values in one minute cost %d requests, want 21: three for each of the seven reconciles, at 0 s to 60 s", got)
	}
	h.reconcileFor(10 * time.Second)
	h.wantReconciled("59ns") // the last value is not lost
}
