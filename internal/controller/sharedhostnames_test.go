package controller

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// After a start, reported overlaps stay until every Gateway was reconciled once.
// Then the Gateways whose overlaps differ are woken.
func TestSharedHostnamesAfterAStart(t *testing.T) {
	var woken []string
	o := &sharedHostnames{
		listManaged: func(context.Context) ([]state.Key, error) {
			return []state.Key{
				state.GatewayKey("ns", "a"), state.GatewayKey("ns", "b"), state.GatewayKey("ns", "reported"), state.GatewayKey("ns", "gone"),
			}, nil
		},
		requeue:   func(key state.Key) { woken = append(woken, key.Name) },
		hostnames: gateway.NewHostnames(),
	}
	serve := func(name string, hostnames ...string) gateway.Shared {
		t.Helper()
		g := newGateway(name, "a.example.com")
		g.Namespace = "ns"
		if name == "reported" {
			g.Status.Conditions = []metav1.Condition{{Type: gateway.TypeHostnameShared, Status: metav1.ConditionTrue}}
		}
		shared, err := o.update(t.Context(), g, hostnames)
		if err != nil {
			t.Fatal(err)
		}
		return shared
	}
	for _, name := range []string{"a", "reported"} {
		if serve(name, "one").Known {
			t.Fatalf("the overlaps of %s are known before those of all Gateways", name)
		}
	}
	serve("reported") // it does not serve anything any more
	o.remove(state.GatewayKey("ns", "gone").NamespacedName)
	if len(woken) != 0 {
		t.Errorf("Gateways are woken before all are known: %v", woken)
	}
	if got := serve("b", "one"); !got.Known || len(got.By["one"]) != 1 {
		t.Errorf("b shares %+v", got)
	}
	if diff := cmp.Diff([]string{"a", "b", "reported", "reported"}, woken); diff != "" {
		t.Errorf("woken Gateways differ (-want +got):\n%s", diff)
	}

	woken = nil
	if got := serve("new", "one"); len(got.By["one"]) != 2 {
		t.Errorf("new shares %+v", got)
	}
	serve("new", "two")
	o.remove(state.GatewayKey("ns", "a").NamespacedName)
	if diff := cmp.Diff([]string{"a", "b", "a", "b", "b"}, woken); diff != "" {
		t.Errorf("woken Gateways differ (-want +got):\n%s", diff)
	}
}
