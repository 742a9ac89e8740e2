package controller

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

func TestSharedHostnamesAreReportedAfterEveryGatewayIsReconciled(t *testing.T) {
	// After a start, existing HostnameShared conditions do not change until every
	// Gateway has been reconciled once. Then the controller requeues the Gateways that
	// share hostnames.
	var requeued []string
	s := &sharedHostnames{
		listManaged: func(context.Context) ([]state.Key, error) {
			return []state.Key{
				state.GatewayKey("ns", "a"), state.GatewayKey("ns", "b"), state.GatewayKey("ns", "reported"), state.GatewayKey("ns", "gone"),
			}, nil
		},
		requeue:   func(key state.Key) { requeued = append(requeued, key.Name) },
		hostnames: gateway.NewHostnames(),
	}
	update := func(name string, hostnames ...string) gateway.Shared {
		t.Helper()
		g := newGateway(name, "a.example.com")
		g.Namespace = "ns"
		if name == "reported" {
			g.Status.Conditions = []metav1.Condition{{Type: conditions.TypeHostnameShared.String(), Status: metav1.ConditionTrue}}
		}
		shared, err := s.update(t.Context(), g, hostnames)
		if err != nil {
			t.Fatal(err)
		}
		return shared
	}
	for _, name := range []string{"a", "reported"} {
		if update(name, "one").Known {
			t.Fatalf("the shared hostnames of %s are known before all Gateways were reconciled", name)
		}
	}
	update("reported") // it no longer serves a hostname
	s.remove(state.GatewayKey("ns", "gone").NamespacedName)
	if len(requeued) != 0 {
		t.Errorf("requeued %v before all Gateways were reconciled", requeued)
	}
	if got := update("b", "one"); !got.Known || len(got.By["one"]) != 1 {
		t.Errorf("b shares %+v, want hostname one with one Gateway", got)
	}
	if diff := cmp.Diff([]string{"a", "b", "reported", "reported"}, requeued); diff != "" {
		t.Errorf("requeued Gateways differ (-want +got):\n%s", diff)
	}

	requeued = nil
	if got := update("new", "one"); len(got.By["one"]) != 2 {
		t.Errorf("new shares %+v, want hostname one with two Gateways", got)
	}
	update("new", "two")
	s.remove(state.GatewayKey("ns", "a").NamespacedName)
	if diff := cmp.Diff([]string{"a", "b", "a", "b", "b"}, requeued); diff != "" {
		t.Errorf("requeued Gateways differ (-want +got):\n%s", diff)
	}
}
