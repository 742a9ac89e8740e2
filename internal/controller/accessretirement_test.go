package controller

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// deleteGateway deletes the Gateway, whose tunnel has no connectors.
func (h *accessHarness) deleteGateway() {
	h.t.Helper()
	h.delete(h.gateway())
	h.changed("shared")
}

func newProtectedHarness(t *testing.T, change func(*v1alpha1.TunnelConfigurationSpec)) *accessHarness {
	t.Helper()
	h := newAccessHarnessWith(t, change)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	h.wantApplications(applicationOfShared)
	return h
}

func TestRetirementDeletesTheTunnelBeforeTheApplications(t *testing.T) {
	h := newProtectedHarness(t, func(*v1alpha1.TunnelConfigurationSpec) {})
	h.deleteGateway()
	for range 180 {
		h.runFor(time.Second)
		if len(h.cloud.LiveTunnels()) > 0 {
			h.wantApplications(applicationOfShared)
		} else if len(h.database.Applications(fakeprovider.AccountID)) > 0 && h.tunnelObject() == nil {
			t.Fatal("the Tunnel object was deleted before the application")
		}
	}
	h.wantApplications()
	if h.tunnelObject() != nil {
		t.Error("the Tunnel object was not deleted")
	}
}

func TestRetirementWaitsForApplicationsAtMostTenMinutes(t *testing.T) {
	h := newProtectedHarness(t, func(*v1alpha1.TunnelConfigurationSpec) {})
	h.api.Restrict("Access: Apps and Policies Read")
	h.deleteGateway()
	h.runFor(3 * time.Minute)
	h.wantReady(v1alpha1.TunnelDeleting, conditions.ReasonApplicationsRemain)
	if len(h.cloud.LiveTunnels()) != 0 {
		t.Error("the tunnel was not deleted")
	}
	h.runFor(11 * time.Minute)
	if h.tunnelObject() != nil {
		t.Error("the Tunnel object was not deleted")
	}
	h.wantApplications(applicationOfShared)
	h.changed("shared")
	h.runFor(15 * time.Minute)
	h.wantMetrics(map[string]float64{"access_orphaned_applications": 1})
}

func TestRetirementThatARestartInterruptsDeletesTheApplications(t *testing.T) {
	h := newProtectedHarness(t, func(*v1alpha1.TunnelConfigurationSpec) {})
	h.api.Restrict("Access: Apps and Policies Read")
	h.deleteGateway()
	h.runFor(5 * time.Minute)
	h.restart()
	h.api.Restrict("Access: Apps and Policies Edit")
	h.runFor(5 * time.Minute)
	h.wantApplications()
	if h.tunnelObject() != nil {
		t.Error("the Tunnel object was not deleted")
	}
}

func TestRetainedTunnelKeepsItsApplications(t *testing.T) {
	h := newProtectedHarness(t, func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Tunnel = &v1alpha1.TunnelSettings{DeletionPolicy: new(v1alpha1.DeletionPolicyRetain)}
	})
	h.deleteGateway()
	h.runFor(time.Hour)
	h.wantReady(v1alpha1.TunnelRetained, conditions.ReasonRetained)
	h.wantApplications(applicationOfShared)
}

// A Gateway that returns while its tunnel still serves keeps its application.
func TestGatewayThatReturnsKeepsItsApplication(t *testing.T) {
	h := newProtectedHarness(t, func(*v1alpha1.TunnelConfigurationSpec) {})
	tag := h.audTag("a.example.com")
	h.deleteGateway()
	h.runFor(20 * time.Second)
	h.create(newGateway("shared", "a.example.com"))
	h.changed("shared")
	h.runFor(10 * time.Minute)
	h.wantApplications(applicationOfShared)
	h.wantRule("a.example.com", "protected acme "+tag)
}

// A deleted Gateway whose hostname waited for protection is not reconciled again and again.
func TestDeletedGatewayHasNoTimeAtWhichAHostnameCloses(t *testing.T) {
	h := newAccessHarness(t)
	h.runFor(time.Minute)
	h.api.Fail(fakeprovider.OpCreateApplication, unavailable()...)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	if h.accessDelay(h.key) == 0 {
		t.Fatal("the hostname does not close")
	}
	h.deleteGateway()
	h.runFor(time.Second)
	if delay := h.accessDelay(h.key); delay != 0 {
		t.Errorf("the next reconcile is due after %s", delay)
	}
}
