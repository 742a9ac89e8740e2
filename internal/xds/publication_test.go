package xds

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// The endpoints of a Service can change while its Gateway is removed. The server must not remember
// the Gateway again, because nothing would remove it.
func TestEndpointsOfARemovedGatewayAreIgnored(t *testing.T) {
	s := NewServer(Options{})
	s.PublishEndpoints(types.NamespacedName{Namespace: "infra", Name: "shared"}, "uid", envoy.Assignments{"eds": nil})
	expectedToFail(t, "PublishEndpoints adds a Gateway that was removed", len(s.gateways) == 0)
}

// expectedToFail fails when the condition of a known defect holds.
func expectedToFail(t *testing.T, reason string, holds bool) {
	t.Helper()
	if holds {
		t.Errorf("passes, but is expected to fail: %s", reason)
	}
}
