package controller

import (
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// deleteGateway deletes the Gateway, and stops the connectors of its tunnel.
func (h *dnsHarness) deleteGateway() {
	h.t.Helper()
	h.cloud.SetConnected(h.tunnelID(), false)
	h.delete(h.gateway())
	h.changed("shared")
}

func TestRetirementDeletesTheRecordsBeforeTheTunnel(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.wantRecords(managedRecord)
	h.deleteGateway()
	h.runFor(29 * time.Second)
	h.wantRecords(managedRecord)
	h.runFor(2 * time.Minute)
	h.wantRecords()
	if h.tunnelObject() != nil || len(h.cloud.LiveTunnels()) != 0 {
		t.Error("the tunnel was not deleted")
	}
}

func TestRetirementHandsOverTheRecords(t *testing.T) {
	// The other Gateway is in the same namespace, so the record moves at once.
	h := newDNSHarness(t)
	h.publish()
	h.addGateway("a.example.com")
	h.publish()
	h.connect()
	h.runFor(time.Minute)
	h.wantRecords(managedRecord)
	id := h.database.Records(h.zone)[0].ID
	h.deleteGateway()
	h.runFor(3 * time.Minute)
	h.wantRecords("a.example.com CNAME west.infra.other")
	if h.database.Records(h.zone)[0].ID != id {
		t.Error("the record was replaced")
	}
	if h.tunnelObject() != nil {
		t.Error("the Tunnel was not deleted")
	}
}

func TestRetirementWaitsAtMostTenMinutes(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.dns.Restrict("Zone Read", "DNS Read")
	h.deleteGateway()
	h.runFor(2 * time.Minute)
	h.wantReady(v1alpha1.TunnelRetiring, conditions.ReasonRecordsRemain)
	h.runFor(11 * time.Minute)
	if h.tunnelObject() != nil || len(h.cloud.LiveTunnels()) != 0 {
		t.Error("the tunnel was not deleted")
	}
	if n := len(h.records(h.zone)); n != 1 {
		t.Errorf("%d records remain, want the one that could not be deleted", n)
	}
	h.changed("shared")
	h.runFor(15 * time.Minute)
	h.wantMetrics(map[string]float64{"dns_records Orphan example.com": 1})
}

func TestRetirementDoesNotWaitWithoutZones(t *testing.T) {
	for name, mode := range map[string]v1alpha1.DNSMode{"Off": v1alpha1.DNSOff, "Observe": v1alpha1.DNSObserve} {
		t.Run(name, func(t *testing.T) {
			h := newDNSHarness(t)
			h.setDNS(mode, "example.com")
			h.restart()
			h.publish()
			h.deleteGateway()
			h.runFor(45 * time.Second)
			if h.tunnelObject() != nil {
				t.Error("the Tunnel was not deleted")
			}
		})
	}
}

func TestRetirementThatARestartInterrupts(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.dns.Restrict("Zone Read", "DNS Read")
	h.deleteGateway()
	h.runFor(5 * time.Minute)
	h.wantReady(v1alpha1.TunnelRetiring, conditions.ReasonRecordsRemain)
	h.restart()
	h.dns.Restrict("Zone Read", "DNS Edit")
	h.runFor(5 * time.Minute)
	h.wantRecords()
	if h.tunnelObject() != nil {
		t.Error("the Tunnel was not deleted")
	}
}

func TestRetainedTunnelKeepsItsRecords(t *testing.T) {
	h := newDNSHarness(t)
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Tunnel = &v1alpha1.TunnelSettings{DeletionPolicy: new(v1alpha1.DeletionPolicyRetain)}
	})
	h.publish()
	h.deleteGateway()
	h.runFor(time.Hour)
	h.wantReady(v1alpha1.TunnelRetained, conditions.ReasonRetained)
	h.wantRecords(managedRecord)
}

func TestGatewayThatIsUnknownKeepsItsRecords(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	h.gateways.inScope = func(string) bool { return false }
	h.delete(h.gateway())
	h.changed("shared")
	h.runFor(time.Hour)
	h.wantRecords(managedRecord)
	if n := len(h.dns.Calls(fakeprovider.OpApply)); n != 1 {
		t.Errorf("%d batches, want 1", n)
	}
}

func TestTunnelOfAnotherClusterKeepsItsRecords(t *testing.T) {
	h := newDNSHarness(t)
	h.publish()
	object := h.tunnelObject()
	h.change(object.Namespace, object.Name, object, func() { object.Spec.ClusterUID = "another" })
	h.restart()
	h.setHostname("b.example.com")
	h.publish()
	h.runFor(time.Hour)
	h.wantRecords(managedRecord)
}

func TestTunnelThatIsAboutToBeDeletedGetsNoRecords(t *testing.T) {
	// A previous process has recorded the deletion before the Gateway returned.
	h := newDNSHarness(t)
	h.publish()
	object := h.tunnelObject()
	object.Status.Deleting = true
	if err := h.kube.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	h.harness.restart()
	h.reconcileOnce()
	entry := h.process.dns.entries[h.key.NamespacedName]
	if entry == nil || entry.gateway.State != ownership.Frozen {
		t.Errorf("the book has %+v, want the state Frozen", entry)
	}
}

func TestGatewayWithAnotherIdentityDoesNotWaitForItsRecords(t *testing.T) {
	// The Gateway was replaced by one whose class has another account. It still wants the
	// records, so they cannot be released.
	h := newDNSHarness(t)
	h.addClass("other", startTime, v1alpha1.TunnelConfigurationSpec{
		Account: &v1alpha1.Account{AccountID: new("other")}, Connector: &v1alpha1.Connector{Enabled: new(false)},
	})
	h.publish()
	h.cloud.SetConnected(h.tunnelID(), false)
	h.delete(h.gateway())
	replacement := newGateway("shared", "a.example.com")
	replacement.UID, replacement.Spec.GatewayClassName = "shared-2", "other"
	h.create(replacement)
	h.changed("shared")
	h.runFor(2 * time.Minute)
	h.changed("shared")
	h.runFor(time.Minute)
	if object := h.tunnelObject(); object == nil || object.Spec.AccountID != "other" {
		t.Errorf("the Tunnel is %+v, want one in the other account", object)
	}
	h.wantRecords("a.example.com CNAME 00000000-0000-4000-8000-000000000001.cfargotunnel.com")
}
