package controller

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// newerVersion is a schema version that this controller does not support.
const newerVersion = 1000

// rollBackController replaces the process with a version before, which does not support
// the schema version with which the Tunnel was written.
func (h *harness) rollBackController() {
	h.t.Helper()
	h.setSchemaVersion(newerVersion)
	h.restart()
	h.identities.written = nil // the certificates are due
	h.cloud.ResetCalls()
	h.drainWrites()
	h.drainEvents()
}

// setSchemaVersion records a schema version, as another controller version or an
// administrator does.
func (h *harness) setSchemaVersion(version int32) {
	h.t.Helper()
	object := h.tunnelObject()
	object.Status.SchemaVersion = version
	if err := h.kube.Status().Update(h.t.Context(), object); err != nil {
		h.t.Fatal(err)
	}
}

// changeEverything changes the routes, the Access settings, the connectors and the
// token.
func (h *harness) changeEverything() {
	h.t.Helper()
	h.setHostname("b.example.com")
	h.requireAccess()
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.Connector = &v1alpha1.Connector{Image: new("registry.example.com/cloudflared:1")}
	})
	object := &v1alpha1.Tunnel{}
	h.change(controllerNamespace, "infra.shared", object, func() {
		object.Annotations = map[string]string{v1alpha1.RotateTokenAnnotation: "1", v1alpha1.ReconcileAnnotation: "1"}
	})
}

// writesBesideStatuses returns the writes that do not only report something.
func (h *harness) writesBesideStatuses() []string {
	var all []string
	for _, w := range h.drainWrites() {
		if w.subresource != "status" {
			all = append(all, w.String())
		}
	}
	return all
}

// stored returns the tunnel's configuration at Cloudflare.
func (h *harness) stored() provider.Configuration {
	h.t.Helper()
	configuration, _ := h.cloud.StoredConfiguration(h.tunnelID())
	return configuration
}

// A controller that is older than the version in the Tunnel does not undo the newer
// version's work, despite any change. The newer version then continues.
func TestControllerOfAnOlderVersionChangesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*harness)
		after  string // the hostname that the newer version serves; empty if it deletes the tunnel
	}{
		"when everything changes":    {(*harness).changeEverything, "b.example.com"},
		"when the Gateway is gone":   {func(h *harness) { h.delete(h.gateway()) }, ""},
		"when the Gateway is paused": {func(h *harness) { h.annotate(v1alpha1.PausedAnnotation, "true") }, "a.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newEnvoyHarness(t)
			before, configuration := h.deployment(), h.stored()
			h.rollBackController()
			test.change(h)
			h.reconcileFor(2 * time.Hour)
			h.wantCalls()
			if writes := h.writesBesideStatuses(); len(writes) > 0 || len(h.identities.written) > 0 {
				t.Errorf("got the writes %q, and certificates of %q", writes, h.identities.written)
			}
			if len(h.xds.publications)+len(h.xds.removed) > 0 {
				t.Errorf("published %d times, and removed %q", len(h.xds.publications), h.xds.removed)
			}
			if !equality.Semantic.DeepEqual(h.deployment(), before) || !equality.Semantic.DeepEqual(h.stored(), configuration) {
				t.Error("the connectors or the configuration were changed")
			}
			h.wantReady(v1alpha1.TunnelBlocked, conditions.ReasonNewerVersion)

			h.setSchemaVersion(tunnel.SchemaVersion)
			h.restart()
			h.reconcileFor(2 * time.Hour)
			switch {
			case test.after == "" && len(h.cloud.LiveTunnels()) > 0:
				t.Error("the newer version does not delete the tunnel")
			case test.after != "" && served(envoy.Whole(envoy.ListenerOpen, h.xds.last(t).Resources.Routes))+served(envoy.Whole(envoy.ListenerProtected, h.xds.last(t).Resources.Routes)) != test.after:
				t.Errorf("the newer version does not serve %s", test.after)
			}
		})
	}
}

// The statuses say what happens, and keep the tunnel's address.
func TestStatusesDuringARollback(t *testing.T) {
	h := newEnvoyHarness(t)
	addresses := h.gateway().Status.Addresses
	h.rollBackController()
	h.reconcileFor(time.Hour)
	h.wantProgrammed(metav1.ConditionFalse, "NewerVersion", "Run the newer version again")
	if got := h.gateway().Status.Addresses; len(got) == 0 || !equality.Semantic.DeepEqual(got, addresses) {
		t.Errorf("the addresses are %v, want %v", got, addresses)
	}
	h.wantEvent("NewerVersion")
	for _, w := range h.drainWrites() {
		if w.kind == "Tunnel" && (w.verb != "patch" || w.subresource != "status") {
			t.Errorf("got the write %s, which removes fields that this version does not know", w)
		}
	}
	if version := h.tunnelObject().Status.SchemaVersion; version != newerVersion {
		t.Errorf("the Tunnel records version %d, want %d", version, newerVersion)
	}
}

// An administrator who stays on the older version sets the Tunnel's version. The older
// version then serves the Gateway by its own rules.
func TestAdministratorKeepsTheOlderVersion(t *testing.T) {
	for _, version := range []int32{0, tunnel.SchemaVersion} {
		h := newEnvoyHarness(t)
		h.rollBackController()
		h.changeEverything()
		h.reconcileFor(time.Hour)
		h.setSchemaVersion(version)
		h.reconcileFor(time.Hour)
		h.wantProgrammed(metav1.ConditionTrue, "Programmed", "")
		if got := served(envoy.Whole(envoy.ListenerProtected, h.xds.last(t).Resources.Routes)); got != "b.example.com" || h.tunnelObject().Status.SchemaVersion != tunnel.SchemaVersion {
			t.Errorf("the older version serves %q, and records version %d", got, h.tunnelObject().Status.SchemaVersion)
		}
	}
}

// When a running process finds a newer version, it stops publishing, but does not end
// the streams.
func TestRunningControllerLearnsOfANewerVersion(t *testing.T) {
	h := newEnvoyHarness(t)
	published := len(h.xds.publications)
	h.setSchemaVersion(newerVersion)
	h.setHostname("b.example.com")
	for range 3 {
		h.reconcileOnce()
	}
	if !slices.Equal(h.xds.withheld, []string{"infra/shared"}) || len(h.xds.publications) != published || len(h.xds.removed) > 0 {
		t.Errorf("withheld %q, published %d times and removed %q", h.xds.withheld, len(h.xds.publications)-published, h.xds.removed)
	}
	if err := h.envoys.publishEndpoints(t.Context(), followed{h.key.NamespacedName, envoy.EndpointSource{NamespacedName: types.NamespacedName{Namespace: "infra", Name: "web"}}}); err != nil || len(h.xds.endpoints) > 0 {
		t.Errorf("published the endpoints %v (%v)", h.xds.endpoints, err)
	}
}

// A newer version's tunnel is no orphan, and its rotation delays no other one.
func TestTunnelOfANewerVersionIsNoOrphan(t *testing.T) {
	h := newEnvoyHarness(t)
	h.rollBackController()
	object := h.tunnelObject()
	object.Status.Token.Phase = v1alpha1.TokenRolling
	if err := h.kube.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	h.reconcileOnce()
	i := h.inventory()
	for range 2 {
		if err := i.checkAccount(t.Context(), account{id: fakeprovider.AccountID, provider: h.cloud}); err != nil {
			t.Fatal(err)
		}
	}
	if candidates := i.orphanCandidates[fakeprovider.AccountID]; len(candidates) > 0 {
		t.Errorf("the orphans are %v", candidates)
	}
	if isRotating([]v1alpha1.Tunnel{*object}, "other") {
		t.Error("the rotation delays others")
	}
	h.cloud.ResetCalls()
	h.reconcileFor(time.Hour)
	h.wantCalls()
}
