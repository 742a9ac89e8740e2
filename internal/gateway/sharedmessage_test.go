package gateway

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// A listener for a hostname must not reveal which Gateways of other teams serve it.
func TestSharedHostnamesNameNoGatewayOfAnotherNamespace(t *testing.T) {
	var c conditionList
	c.setHostnameShared(Shared{Known: true, By: map[string][]types.NamespacedName{
		"a.example.com": {{Namespace: "own", Name: "second"}, {Namespace: "own", Name: "third"}, {Namespace: "secret", Name: "x"}, {Namespace: "secret", Name: "y"}},
		"b.example.com": {{Namespace: "secret", Name: "x"}},
		"c.example.com": {{Namespace: "own", Name: "second"}},
	}}, &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "first"}})
	const want = "Other Gateways serve the same hostnames with separate tunnels, but a DNS record can point to only one tunnel: " +
		"a.example.com (Gateway own/second, Gateway own/third, 2 Gateways in other namespaces); b.example.com (1 Gateway in another namespace); " +
		"c.example.com (Gateway own/second). Remove each hostname from all Gateways but one."
	if message := c.list[0].Message; message != want {
		t.Errorf("got %q, want %q", message, want)
	}
}
