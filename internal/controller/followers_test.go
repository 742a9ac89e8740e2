package controller

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

func serviceSource(namespace, name string) envoy.EndpointSource {
	return envoy.EndpointSource{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

func setOfServices(names ...string) map[envoy.EndpointSource]bool {
	services := map[envoy.EndpointSource]bool{}
	for _, name := range names {
		services[serviceSource("team", name)] = true
	}
	return services
}

// An EndpointSlice leads to the Gateways that follow its Service now.
func TestFollowers(t *testing.T) {
	m := newMemories()
	first, second := types.NamespacedName{Name: "first"}, types.NamespacedName{Name: "second"}
	web := serviceSource("team", "web")
	p := m.publicationOf(first)
	m.follow(first, p, setOfServices("web", "shop"))
	m.follow(second, m.publicationOf(second), setOfServices("web"))
	if found := m.followersOf(web); len(found) != 2 || len(m.allFollowers()) != 2 {
		t.Errorf("the Service has the followers %v, and all are %v; want both Gateways", found, m.allFollowers())
	}
	m.follow(first, p, setOfServices("shop"))
	if found := m.followersOf(web); len(found) != 1 || found[0].gateway != second {
		t.Errorf("after one Gateway stopped following, the followers are %v", found)
	}
	m.takePublication(second)
	m.takePublication(first)
	m.follow(first, p, setOfServices("web")) // of the removed publication
	if len(m.followers.byGateway)+len(m.followers.bySource) != 0 {
		t.Errorf("without publications, the followers are %v", m.allFollowers())
	}
}

// BenchmarkFollowers finds the Gateways that follow a Service among 100 Gateways with
// 500 Services each.
func BenchmarkFollowers(b *testing.B) {
	m := newMemories()
	for i := range 100 {
		services := map[envoy.EndpointSource]bool{}
		for j := range 500 {
			services[serviceSource(fmt.Sprint(i), fmt.Sprint(j))] = true
		}
		gateway := types.NamespacedName{Name: fmt.Sprint(i)}
		m.follow(gateway, m.publicationOf(gateway), services)
	}
	for b.Loop() {
		if found := m.followersOf(serviceSource("50", "250")); len(found) != 1 {
			b.Fatal(found)
		}
	}
}
