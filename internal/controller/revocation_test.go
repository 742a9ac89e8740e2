package controller

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// revocationHarness simulates tenants that share a Gateway: the Service in team-a flips
// between a ClusterIP and an ExternalName, and the route in team-b empties the bucket
// for writes.
type revocationHarness struct {
	*harness
	// external reports whether the Service in team-a has the type ExternalName, and
	// since is the uptime since which the tunnel has led to it nevertheless; -1 if it
	// does not.
	external bool
	since    time.Duration
	// longest is the longest such time, exposed is their sum, and total is the time with an
	// ExternalName.
	longest, exposed, total time.Duration
}

// revocationStep is how often team-b changes its route.
const revocationStep = time.Second

func newRevocationHarness(t *testing.T) *revocationHarness {
	t.Helper()
	service := newService()
	service.Namespace = "team-a"
	h := newHarness(t, namespaceObject("team-a"), namespaceObject("team-b"), routeOf("team-a", "/a"), routeOf("team-b", "/b"), service)
	h.changeGateway(func(g *gatewayv1.Gateway) {
		g.Spec.Listeners[0].AllowedRoutes = &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: ptr.To(gatewayv1.NamespacesFromAll)}}
	})
	h.reconcileFor(5 * time.Second)
	return &revocationHarness{harness: h, since: -1}
}

// flip changes the type of the Service in team-a.
func (h *revocationHarness) flip() {
	h.external = !h.external
	service := &corev1.Service{}
	h.change("team-a", "web", service, func() {
		service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeClusterIP, ""
		if h.external {
			service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "metadata.example.com"
		}
	})
}

// leadsToService reports whether a rule at Cloudflare leads to the Service in team-a.
func (h *revocationHarness) leadsToService() bool {
	c, _, err := h.cloud.Configuration(h.t.Context(), h.tunnelID())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, rule := range c.Ingress {
		if strings.Contains(rule.Service, "web.team-a.") {
			return true
		}
	}
	return false
}

// simulate lets both tenants change their objects for the duration.
func (h *revocationHarness) simulate(duration, period time.Duration) {
	h.t.Helper()
	for elapsed := time.Duration(0); elapsed < duration; elapsed += revocationStep {
		route := &gatewayv1.HTTPRoute{}
		h.change("team-b", "web", route, func() {
			route.Spec.Rules[0].Matches[0].Path.Value = ptr.To([]string{"/x", "/y"}[elapsed/revocationStep%2])
			route.Generation++
		})
		if elapsed%period == 0 {
			h.flip()
		}
		h.reconcileFor(revocationStep)
		h.measure()
	}
}

// measure adds the last step to the times.
func (h *revocationHarness) measure() {
	if !h.external {
		h.since = -1
		return
	}
	h.total += revocationStep
	if !h.leadsToService() {
		h.since = -1
		return
	}
	if h.since < 0 {
		h.since = h.uptime - revocationStep
	}
	h.exposed += revocationStep
	h.longest = max(h.longest, h.uptime-h.since)
}

// A Service that becomes an ExternalName is no longer reached after six seconds, even
// while another tenant uses up all writes, and however often the Service itself
// changes.
func TestRevocationDoesNotWaitForOtherChanges(t *testing.T) {
	for _, test := range []struct {
		interval v1alpha1.Duration
		period   time.Duration
	}{{"5s", 4 * time.Second}, {"5s", 9 * time.Second}, {"60s", 11 * time.Second}} {
		t.Run(fmt.Sprintf("interval %s, flip every %s", test.interval, test.period), func(t *testing.T) {
			h := newRevocationHarness(t)
			h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) {
				s.Limits = &v1alpha1.Limits{ConfigurationUpdates: &v1alpha1.ConfigurationUpdates{Interval: &test.interval}}
			})
			h.simulate(6*time.Minute, test.period) // both buckets are empty after one
			t.Logf("longest %s, %.1f%% of %s, %d writes", h.longest, 100*h.exposed.Seconds()/h.total.Seconds(), h.total, h.countWrites())
			if h.longest > 6*time.Second {
				t.Errorf("the tunnel leads to the Service for %s after its revocation", h.longest)
			}
		})
	}
}
