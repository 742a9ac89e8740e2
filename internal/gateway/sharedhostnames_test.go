package gateway_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// Each step sets one Gateway's hostnames. It states the other Gateways that this affects,
// and the shared hostnames afterwards.
func TestSetReturnsGatewaysWithChangedSharedHostnames(t *testing.T) {
	names := map[string]types.NamespacedName{
		"a": {Namespace: "ns", Name: "a"}, "b": {Namespace: "ns", Name: "b"}, "c": {Namespace: "ns", Name: "c"},
	}
	h := gateway.NewHostnames()
	for i, step := range []struct {
		gateway  string
		serves   []string
		affected []string
		shared   map[string][]string // hostnames that the Gateway shares
	}{
		{"a", []string{"one", "two"}, nil, nil},
		{"b", []string{"three"}, nil, nil},
		{"b", []string{"three", "two"}, []string{"a"}, map[string][]string{"two": {"a"}}},
		{"b", []string{"three", "two"}, nil, map[string][]string{"two": {"a"}}},
		{"c", []string{"one", "two"}, []string{"a", "b"}, map[string][]string{"one": {"a"}, "two": {"a", "b"}}},
		{"b", []string{"four"}, []string{"a", "c"}, nil},
		{"a", nil, []string{"c"}, nil},
		{"c", []string{"one", "two"}, nil, nil},
	} {
		var affected []string
		for _, name := range h.Set(names[step.gateway], slices.Sorted(slices.Values(step.serves))) {
			affected = append(affected, name.Name)
		}
		if diff := cmp.Diff(step.affected, affected); diff != "" {
			t.Errorf("step %d: affected Gateways differ (-want +got):\n%s", i, diff)
		}
		got := h.Shared(names[step.gateway])
		if !got.Known {
			t.Errorf("step %d: the shared hostnames are not known", i)
		}
		var shared map[string][]string
		for hostname, others := range got.By {
			for _, other := range others {
				if shared == nil {
					shared = map[string][]string{}
				}
				shared[hostname] = append(shared[hostname], other.Name)
			}
		}
		if diff := cmp.Diff(step.shared, shared); diff != "" {
			t.Errorf("step %d: shared hostnames differ (-want +got):\n%s", i, diff)
		}
	}
}
