package controller

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func newAccessEnvoyHarness(t *testing.T) *accessHarness {
	t.Helper()
	h := newAccessHarnessWith(t, func(s *v1alpha1.TunnelConfigurationSpec) {
		s.DataPlane, s.Connector = new(v1alpha1.DataPlaneEnvoy), nil
	})
	h.runFor(time.Minute)
	h.wantListeners("without a demand", "a.example.com", "", "", "")
	return h
}

// unavailable are the errors of an outage.
func unavailable() []error {
	return slices.Repeat([]error{&provider.UnavailableError{Err: errors.New("no response")}}, 1000)
}

func TestEnvoyServesAProtectedHostname(t *testing.T) {
	h := newAccessEnvoyHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	h.wantApplications(applicationOfShared)
	h.wantListeners("with an application", "", "", "a.example.com", "")
	h.wantRule("a.example.com", h.protected("a.example.com"))
	h.setPolicies()
	h.runFor(10 * time.Minute)
	h.wantApplications()
	h.wantListeners("after the end of the demand", "a.example.com", "", "", "")
}

// A new leader serves no client by a table that was decided without the rules in effect.
func TestNewLeaderPublishesNoTableBeforeItHasReadTheRules(t *testing.T) {
	h := newAccessEnvoyHarness(t)
	h.setPolicies("employees")
	h.runFor(time.Minute)
	tag := h.protected("a.example.com")
	outage := unavailable()[:6]
	h.cloud.Fail(fakeprovider.OpConfiguration, outage...)
	h.api.Fail(fakeprovider.OpApplications, unavailable()...)
	h.restart()
	h.cloud.ResetCalls()
	for len(h.cloud.Calls(fakeprovider.OpConfiguration)) < len(outage) {
		if tables, writes := len(h.xds.publications), len(h.cloud.Calls(fakeprovider.OpConfigure)); tables+writes != 0 {
			t.Fatalf("%d tables were published, and the configuration was written %d times, before the rules were read", tables, writes)
		}
		h.runFor(time.Second)
	}
	h.runFor(10 * time.Minute)
	h.wantListeners("with the rules, and without the applications", "", "", "a.example.com", "")
	h.wantRule("a.example.com", tag)
}

// A demand closes a hostname that is new to the table by xDS, even while the Gateway is paused
// and Cloudflare does not answer.
func TestDemandClosesANewHostnameInAPauseAndAnOutage(t *testing.T) {
	h := newAccessEnvoyHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.changed("shared")
	h.runFor(time.Second)
	h.cloud.Fail(fakeprovider.OpConfiguration, unavailable()...)
	h.cloud.Fail(fakeprovider.OpConfigure, unavailable()...)
	h.api.Fail(fakeprovider.OpCreateApplication, unavailable()...)
	h.setPolicies("employees")
	h.setHostname("b.example.com")
	h.changed("shared")
	h.runFor(time.Second)
	h.wantListeners("a new hostname", "", "b.example.com", "", "b.example.com")
	h.wantAccess("False Pending", "b.example.com")
}

// The exception of five minutes holds for a hostname that was served open, and ends on time
// while nothing else happens.
func TestOpenHostnameClosesByXDSOnTime(t *testing.T) {
	h := newAccessEnvoyHarness(t)
	h.api.Fail(fakeprovider.OpCreateApplication, unavailable()...)
	h.setPolicies("employees")
	h.runFor(3 * time.Minute)
	h.wantListeners("at first", "a.example.com", "", "", "")
	h.runFor(2 * time.Minute)
	h.wantListeners("after five minutes", "", "a.example.com", "", "a.example.com")
}
