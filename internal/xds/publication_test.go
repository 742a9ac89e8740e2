package xds

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// A Service's endpoints can change while its Gateway is removed. The server must not
// remember the Gateway again, because nothing would remove it.
func TestEndpointsOfARemovedGatewayAreIgnored(t *testing.T) {
	s := NewServer(Options{})
	s.PublishEndpoints(types.NamespacedName{Namespace: "infra", Name: "shared"}, "uid", envoy.Assignments{"eds": nil})
	if len(s.gateways) != 0 {
		t.Errorf("the server remembers %d Gateways, want none", len(s.gateways))
	}
}

func TestRemovedGatewaysAreForgotten(t *testing.T) {
	s := NewServer(Options{})
	name := types.NamespacedName{Namespace: "infra", Name: "shared"}
	g := s.ensureGateway(name)
	s.Remove(name)
	s.commit(g, func() { t.Error("a removed Gateway changes") })() // a publication that ends after its Gateway
	if len(s.gateways) != 0 {
		t.Errorf("the server remembers %d Gateways, want none", len(s.gateways))
	}
}
