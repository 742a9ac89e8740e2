package controller

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	fakeprovider "github.com/tunnel-gateway/tunnel-gateway/provider/fake"
)

func TestGatewayGetsATunnel(t *testing.T) {
	h := newHarness(t)
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpFindTunnel, fakeprovider.OpCreateTunnel, fakeprovider.OpConfigure, fakeprovider.OpToken)
	object := h.tunnelObject()
	if object == nil || object.Status.Phase != v1alpha1.TunnelServing || object.Status.TunnelID == "" {
		t.Fatalf("the Tunnel is %+v, want phase Serving and a tunnel ID", object)
	}
	if got, want := object.Spec.Name, "west.infra.shared"; got != want {
		t.Errorf("the tunnel's name is %s, want %s", got, want)
	}
	if c := h.programmedCondition(); c.Status != metav1.ConditionTrue {
		t.Errorf("Programmed is %+v, want True", c)
	}
	if addresses := h.gateway().Status.Addresses; len(addresses) != 1 || addresses[0].Value != object.Status.TunnelID+".cfargotunnel.com" {
		t.Errorf("the addresses are %+v, want the tunnel's hostname", addresses)
	}
	h.reconcileOnce()
	h.wantCalls()

	h.restart()
	h.reconcileOnce()
	h.wantCalls(fakeprovider.OpConfiguration)
}

func TestTunnelRetiresAfterTheDelay(t *testing.T) {
	h := newHarness(t)
	h.reconcileFor(time.Second)
	h.delete(h.gateway())
	h.reconcileFor(29 * time.Second)
	if len(h.cloud.LiveTunnels()) != 1 {
		t.Fatal("the tunnel was deleted before the end of the retirement delay")
	}
	h.reconcileFor(10 * time.Second)
	if remaining := h.cloud.LiveTunnels(); len(remaining) != 0 || h.tunnelObject() != nil {
		t.Errorf("the tunnels %+v and the Tunnel %+v were not deleted", remaining, h.tunnelObject())
	}
	h.wantEvent("TunnelRetiring")
}
