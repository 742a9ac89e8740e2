package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

// requireAccessFor makes the GatewayClass require Access for the hostnames.
func (h *harness) requireAccessFor(audience v1alpha1.AUDTag, hostnames ...string) {
	h.t.Helper()
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
		s.ListenerConfigurations = nil
		for _, hostname := range hostnames {
			s.ListenerConfigurations = append(s.ListenerConfigurations, v1alpha1.ListenerConfiguration{
				Hostname: hostname, Access: &v1alpha1.Access{Required: true, TeamName: ptr.To("team"), AUDTags: []v1alpha1.AUDTag{audience}},
			})
		}
	})
}

// setPath makes the route match one path, or every path if it is empty.
func (h *harness) setPath(path string) {
	h.t.Helper()
	route := &gatewayv1.HTTPRoute{}
	h.change("infra", "web", route, func() {
		route.Spec.Rules[0].Matches = nil
		if path != "" {
			route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: ptr.To(gatewayv1.PathMatchExact), Value: &path}}}
		}
	})
}

// wantListeners compares the hostnames that each listener serves, and those to which it
// responds with 403.
func (h *harness) wantListeners(situation, open, openClosed, protected, protectedClosed string) {
	h.t.Helper()
	p := h.xds.last(h.t).Resources
	for _, c := range []struct{ name, got, want string }{
		{"the open listener serves", served(envoy.Whole(envoy.ListenerOpen, p.Routes)), open}, {"the open listener returns 403 for", closed(envoy.Whole(envoy.ListenerOpen, p.Routes)), openClosed},
		{"the protected listener serves", served(envoy.Whole(envoy.ListenerProtected, p.Routes)), protected}, {"the protected listener returns 403 for", closed(envoy.Whole(envoy.ListenerProtected, p.Routes)), protectedClosed},
	} {
		if c.got != c.want {
			h.t.Errorf("%s: %s %q, want %q", situation, c.name, c.got, c.want)
		}
	}
}

// A hostname that becomes protected stays open for five minutes at most, even while the
// Gateway is paused. The protected listener serves it before the tunnel has its rule,
// so that no request with a token fails.
func TestHostnameThatGetsAccessStaysOpenForFiveMinutes(t *testing.T) {
	h := newEnvoyHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.requireAccessFor("tag", "*.example.com")
	h.reconcileOnce()
	h.wantListeners("at first", "a.example.com", "", "a.example.com", "")
	if message := h.dataPlaneMessage(); !strings.Contains(message, "for *.example.com is not in effect") || !strings.Contains(message, "serves a.example.com without Access") {
		t.Errorf("DataPlaneReady is %q", message)
	}
	h.reconcileFor(maxOpenOfHostnames)
	h.wantListeners("after five minutes", "", "a.example.com", "a.example.com", "")
	if message := h.dataPlaneMessage(); !strings.Contains(message, "returns 403 for a.example.com") {
		t.Errorf("after five minutes, DataPlaneReady is %q", message)
	}

	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.reconcileFor(driftInterval / 2)
	h.wantListeners("after the push", "", "", "a.example.com", "")
	if problem := want("DataPlaneReady", h.dataPlaneReady(), "True Ready"); problem != "" {
		t.Error(problem)
	}
}

// The configuration changes after every connected Envoy has the routes on both
// listeners. The wait holds no worker, and no status changes during it.
func TestChangeOfAccessWaitsForAcknowledgements(t *testing.T) {
	for _, tt := range []struct {
		name         string
		acknowledges bool
	}{{"an Envoy acknowledges", true}, {"an Envoy acknowledges nothing", false}} {
		t.Run(tt.name, func(t *testing.T) {
			h := newEnvoyHarness(t)
			h.xds.state, h.xds.unacknowledged = xds.State{Connected: 1, Known: true, Published: true}, true
			h.requireAccessFor("tag", "*.example.com")
			h.drainWrites()
			h.recordChange()
			h.reconcileOnce()
			h.wantListeners("before the acknowledgement", "a.example.com", "", "a.example.com", "")
			h.wantCalls()
			h.wantWrites()
			if !h.xds.last(t).WantsAcknowledgement {
				t.Error("the acknowledgements are not wanted")
			}
			if got, want := h.requeueAfter, 2*time.Second; got != want {
				t.Errorf("the reconcile continues after %s, want %s", got, want)
			}
			if h.memories.find(h.key).queued.IsZero() {
				t.Error("the change is not pending")
			}

			if tt.acknowledges {
				h.xds.unacknowledged = false
			} else {
				h.advance(h.requeueAfter)
			}
			h.reconcileOnce()
			h.wantCalls(fakeprovider.OpConfigure)
			h.wantListeners("after the push", "", "", "a.example.com", "")
			if !h.memories.find(h.key).queued.IsZero() {
				t.Error("the change is still pending")
			}
		})
	}
}

// maxOpenOfHostnames is how long hostnames that become protected may stay open.
const maxOpenOfHostnames = 5 * time.Minute

// A hostname that becomes protected also closes if its Gateway is no longer valid, so
// that no decision about it is possible.
func TestHostnameThatGetsAccessClosesDespiteAnInvalidGateway(t *testing.T) {
	h := newEnvoyHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.requireAccessFor("tag", "a.example.com")
	h.reconcileOnce()
	h.changeGateway(func(g *gatewayv1.Gateway) { g.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Value: "192.0.2.1"}} })
	h.reconcileFor(maxOpenOfHostnames / 2)
	h.wantListeners("before the time has passed", "a.example.com", "", "a.example.com", "")
	h.reconcileFor(maxOpenOfHostnames / 2)
	h.wantListeners("after five minutes", "", "a.example.com", "a.example.com", "")
	if got, want := h.xds.last(t).Tunnel, h.tunnelObject().UID; got != want {
		t.Errorf("published for Tunnel %q, want %q", got, want)
	}
}

// A hostname that becomes protected below an open wildcard, or that is new, is never
// served without Access.
func TestNewProtectedHostnameIsClosedUntilItsRuleApplies(t *testing.T) {
	h := newEnvoyHarness(t)
	h.setHostname("*.example.com")
	h.reconcileFor(driftInterval / 2)
	h.cloud.Fail(fakeprovider.OpConfigure, slices.Repeat([]error{errors.New("unavailable")}, 3)...)
	h.requireAccessFor("tag", "admin.example.com")
	h.reconcileOnce()
	h.wantListeners("below an open wildcard", "*.example.com", "admin.example.com", "admin.example.com", "")
	h.setHostname("new.example.com")
	h.requireAccessFor("tag", "new.example.com")
	h.reconcileOnce()
	h.wantListeners("a new hostname", "", "new.example.com", "new.example.com", "")
	h.reconcileFor(driftInterval / 2)
	h.wantListeners("after the push", "", "", "new.example.com", "")
}

// While a hostname that becomes protected stays open, nothing is added to its routes.
func TestHostnameThatGetsAccessGetsNoOpenRoutes(t *testing.T) {
	h := newEnvoyHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.requireAccessFor("tag", "a.example.com")
	h.reconcileOnce()
	h.setPath("/added")
	h.reconcileOnce()
	added := h.xds.last(t).Resources
	if got := served(envoy.Whole(envoy.ListenerOpen, added.Routes)); got != "" {
		t.Errorf("the open listener serves %q with a route that was added", got)
	}
	if got := served(envoy.Whole(envoy.ListenerProtected, added.Routes)); got != "a.example.com" {
		t.Errorf("the protected listener serves %q, want a.example.com", got)
	}
	h.setPath("")
	h.reconcileOnce()
	if got := served(envoy.Whole(envoy.ListenerOpen, h.xds.last(t).Resources.Routes)); got != "" {
		t.Errorf("the open listener serves %q with a route that came back", got)
	}
	for i := range 5 {
		h.setPath(fmt.Sprintf("/%d", i))
		h.reconcileOnce()
	}
	if n := len(envoy.Whole(envoy.ListenerOpen, h.xds.last(t).Resources.Routes).VirtualHosts[0].Routes); n > 2 {
		t.Errorf("after five changes, the hostname has %d open routes, want one for each list", n)
	}
}

// A leader that has not served a hostname without Access does not begin to.
func TestNewLeaderClosesHostnameWhoseRuleIsOutstanding(t *testing.T) {
	h := newEnvoyHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.requireAccessFor("tag", "a.example.com")
	h.reconcileOnce()
	h.restart()
	h.reconcileOnce()
	for i, p := range h.xds.publications {
		if got := served(envoy.Whole(envoy.ListenerOpen, p.Resources.Routes)); got != "" {
			t.Errorf("publication %d serves %q on the open listener", i, got)
		}
	}
	h.wantListeners("after the leader changed", "", "a.example.com", "a.example.com", "")
}

// A new leader that cannot read the configuration keeps serving the hostnames whose
// Access settings an earlier one has reported as applied.
func TestNewLeaderServesProtectedHostnamesDuringAnOutage(t *testing.T) {
	h := newEnvoyHarness(t)
	h.requireAccessFor("tag", "a.example.com")
	h.reconcileFor(driftInterval / 2)
	h.restart()
	h.cloud.Fail(fakeprovider.OpConfiguration, slices.Repeat([]error{errors.New("unavailable")}, 20)...)
	h.reconcileFor(time.Minute)
	h.wantListeners("during the outage", "", "", "a.example.com", "")
	h.requireAccessFor("other", "a.example.com")
	h.reconcileFor(time.Minute)
	h.wantListeners("with another audience", "", "a.example.com", "", "a.example.com")
}

// Tokens for another audience do not open a hostname while its rule is outstanding.
func TestNewAudienceClosesAHostnameUntilItsRuleApplies(t *testing.T) {
	h := newEnvoyHarness(t)
	h.requireAccessFor("tag", "a.example.com")
	h.reconcileFor(driftInterval / 2)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.requireAccessFor("other", "a.example.com")
	h.reconcileFor(driftInterval / 2)
	h.wantListeners("while the Gateway is paused", "", "a.example.com", "", "a.example.com")
	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.reconcileFor(driftInterval / 2)
	h.wantListeners("after the push", "", "", "a.example.com", "")
}
