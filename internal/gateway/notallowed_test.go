package gateway_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Entries in ListenerSets that are not allowed add no work to a decision, and their
// Secrets are not read.
func TestEntriesThatAreNotAllowedCostNothing(t *testing.T) {
	const sets = 100
	allocated := func(entries int) float64 {
		s := teamsSnapshot(1)
		s.Gateway.Spec.AllowedListeners.Namespaces.From = new(gatewayv1.NamespacesFromSame)
		for i := range sets {
			set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "hostile", Name: fmt.Sprint("set-", i), Generation: 1}}
			for e := range entries {
				entry := teamListener(fmt.Sprint("l", e), fmt.Sprintf("l%d.example.com", e))
				entry.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "hostile"}}}
				set.Spec.Listeners = append(set.Spec.Listeners, entry)
			}
			s.ListenerSets = append(s.ListenerSets, set)
		}
		for _, name := range gateway.SecretsToRead(s) {
			if name.Namespace == "hostile" {
				t.Errorf("the controller reads Secret %s", name)
			}
		}
		return testing.AllocsPerRun(5, func() { gateway.Build(s, options).Report(gateway.Outcome{}) })
	}
	few, many := allocated(1), allocated(64)
	if many > few+sets {
		t.Errorf("%d sets with 64 entries each need %v allocations, and %v with one entry", sets, many, few)
	}
	t.Logf("%v allocations for %d sets", many, sets)
}
