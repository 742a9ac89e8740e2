package tunnel

import (
	"errors"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

func TestAFailureSaysWhatTheControllerAttempted(t *testing.T) {
	for _, action := range []Action{
		Record, Claim, ReadTunnel, FindByName, Create, ReadConfiguration, Configure, ReadToken, RotateToken,
		RunConnectors, StopConnectors, WithdrawStatuses, ListConnections, Disconnect, Delete, DeleteObject,
	} {
		if attempts[action] == "" {
			t.Errorf("the action %s has no description", action)
		}
	}
	p := problemOf(Step{Action: RunConnectors}, errors.New("apply Deployment tunnel-gateway/infra.shared: forbidden"))
	want := "Failed to reconcile the connectors: apply Deployment tunnel-gateway/infra.shared: forbidden."
	if p.Reason != conditions.ReasonConnectorsFailed || p.Message != want {
		t.Errorf("the problem is %s: %s, want %s: %s", p.Reason, p.Message, conditions.ReasonConnectorsFailed, want)
	}
}
