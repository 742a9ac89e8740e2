package gateway_test

import (
	"math/rand/v2"
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

// After any changes, the index knows what a new index knows, and has returned each Gateway
// whose shared hostnames have changed.
func TestHostnamesEqualNewIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a reproducible test
	names := []types.NamespacedName{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	h, served, last := gateway.NewHostnames(), map[types.NamespacedName][]string{}, map[types.NamespacedName]gateway.Shared{}
	for step := range 1000 {
		changed := names[random.IntN(len(names))]
		if random.IntN(4) > 0 {
			served[changed] = nil
			for _, hostname := range []string{"", "one", "three", "two"} {
				if random.IntN(3) == 0 {
					served[changed] = append(served[changed], hostname)
				}
			}
		}
		affected := h.Set(changed, served[changed])
		fresh := gateway.NewHostnames()
		for name, hostnames := range served {
			fresh.Set(name, hostnames)
		}
		for _, name := range names {
			got := h.Shared(name)
			if diff := cmp.Diff(fresh.Shared(name), got); diff != "" {
				t.Fatalf("step %d: what %s shares differs from a new index (-want +got):\n%s", step, name, diff)
			}
			if name != changed && slices.Contains(affected, name) == cmp.Equal(last[name].By, got.By) {
				t.Fatalf("step %d: the affected Gateways are %v, and %s shared %v and now shares %v", step, affected, name, last[name].By, got.By)
			}
			last[name] = got
		}
		if diff := cmp.Diff(fresh.Sharing(), h.Sharing()); diff != "" {
			t.Fatalf("step %d: the sharing Gateways differ from a new index (-want +got):\n%s", step, diff)
		}
	}
}
