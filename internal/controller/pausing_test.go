package controller

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// While a Gateway is paused, its tunnel keeps the hostname from before the pause, and
// the condition says since when it is paused.
func TestConditionReportsTheBeginningOfThePause(t *testing.T) {
	h := newServedHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.reconcileOnce()
	h.setHostname("b.example.com")
	h.reconcileFor(time.Hour)
	if h.servedHostname() != "a.example.com" {
		t.Errorf("the tunnel serves %s, want the hostname before the pause", h.servedHostname())
	}
	const want = "has been paused since 2026-11-22T12:00:05Z, so the controller changes nothing at Cloudflare, and what others revoke stays in effect there."
	if c := h.programmedCondition(); !strings.Contains(c.Message, want) {
		t.Errorf("the message is %q, want %q", c.Message, want)
	}
	started := float64(startTime.Add(5 * time.Second).Unix())
	h.wantMetrics(map[string]float64{"gateway_paused": 1, "gateway_paused_since_timestamp_seconds": started})
	h.restart()
	h.reconcileFor(time.Second)
	h.wantMetrics(map[string]float64{"gateway_paused_since_timestamp_seconds": started})
	h.annotate(v1alpha1.PausedAnnotation, "false")
	h.reconcileFor(time.Second)
	h.wantMetrics(map[string]float64{"gateway_paused": 0, "gateway_paused_since_timestamp_seconds": -1})
	if since := h.tunnelObject().Status.PausedSince; since != nil || h.servedHostname() != "b.example.com" {
		t.Errorf("after the pause, the Tunnel records %v and serves %s", since, h.servedHostname())
	}
}

func TestClassForbidsPausing(t *testing.T) {
	h := newServedHarness(t)
	h.annotate(v1alpha1.PausedAnnotation, "true")
	h.setHostname("b.example.com")
	h.reconcileFor(time.Minute)
	if h.servedHostname() != "a.example.com" {
		t.Errorf("while pausing is allowed, the tunnel serves %s", h.servedHostname())
	}
	h.changeConfiguration(func(s *v1alpha1.TunnelConfigurationSpec) { s.Pausing = ptr.To(v1alpha1.PausingForbidden) })
	h.reconcileFor(time.Minute)
	if h.servedHostname() != "b.example.com" || h.tunnelObject().Spec.Paused {
		t.Errorf("while pausing is forbidden, the tunnel serves %s", h.servedHostname())
	}
	h.wantMetrics(map[string]float64{"gateway_paused": 0, "gateway_paused_since_timestamp_seconds": -1})
	accepted := meta.FindStatusCondition(h.gateway().Status.Conditions, string(gatewayv1.GatewayConditionAccepted))
	if accepted == nil || !strings.Contains(accepted.Message, "has no effect, because the GatewayClass forbids pausing") {
		t.Errorf("Accepted is %+v", accepted)
	}
	// The Tunnel retires like any other if its Gateway has the annotation.
	h.moveToAnotherClass()
	h.reconcileFor(2 * time.Minute)
	if h.tunnelObject() != nil {
		t.Error("the Tunnel of a Gateway that another class manages does not retire")
	}
}
