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

func clustersFor(namespace string, services ...string) []envoy.EndpointsOf {
	var clusters []envoy.EndpointsOf
	for _, name := range services {
		clusters = append(clusters, envoy.EndpointsOf{Service: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	return clusters
}

// An EndpointSlice leads to the Gateways that follow its Service now.
func TestFollowers(t *testing.T) {
	m := newMemories()
	first, second := types.NamespacedName{Name: "first"}, types.NamespacedName{Name: "second"}
	web := serviceSource("team", "web")
	p := m.publicationOf(first)
	m.follow(first, p, clustersFor("team", "web", "shop"))
	m.follow(second, m.publicationOf(second), clustersFor("team", "web"))
	if found := m.followersOf(web); len(found) != 2 || len(m.allFollowers()) != 2 {
		t.Errorf("the Service has the followers %v, and all are %v; want both Gateways", found, m.allFollowers())
	}
	m.unfollow(first, p, []envoy.EndpointSource{web})
	if found := m.followersOf(web); len(found) != 1 || found[0].gateway != second {
		t.Errorf("after one Gateway stopped following, the followers are %v", found)
	}
	m.takePublication(second)
	m.takePublication(first)
	m.follow(first, p, clustersFor("team", "web")) // of the removed publication
	if len(m.followers.byGateway)+len(m.followers.bySource) != 0 {
		t.Errorf("without publications, the followers are %v", m.allFollowers())
	}
}

// BenchmarkFollowers finds the Gateways that follow a Service among 100 Gateways with
// 500 Services each.
func BenchmarkFollowers(b *testing.B) {
	m := newMemories()
	for i := range 100 {
		gateway := types.NamespacedName{Name: fmt.Sprint(i)}
		for j := range 500 {
			m.follow(gateway, m.publicationOf(gateway), clustersFor(fmt.Sprint(i), fmt.Sprint(j)))
		}
	}
	for b.Loop() {
		if found := m.followersOf(serviceSource("50", "250")); len(found) != 1 {
			b.Fatal(found)
		}
	}
}
