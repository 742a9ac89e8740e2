package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
)

// followers has the Services and ServiceImports to whose pods Gateways' Envoys connect, in
// both directions: an EndpointSlice changes often, and must not lead to a search in all
// Gateways.
type followers struct {
	byGateway map[types.NamespacedName]map[envoy.EndpointSource]bool
	bySource  map[envoy.EndpointSource]map[types.NamespacedName]bool
}

func newFollowers() followers {
	return followers{map[types.NamespacedName]map[envoy.EndpointSource]bool{}, map[envoy.EndpointSource]map[types.NamespacedName]bool{}}
}

// add makes the Gateway follow the source.
func (f followers) add(gateway types.NamespacedName, source envoy.EndpointSource) {
	addTo(f.byGateway, gateway, source)
	addTo(f.bySource, source, gateway)
}

// remove is the opposite of add.
func (f followers) remove(gateway types.NamespacedName, source envoy.EndpointSource) {
	removeFrom(f.byGateway, gateway, source)
	removeFrom(f.bySource, source, gateway)
}

// removeGateway makes the Gateway follow nothing.
func (f followers) removeGateway(gateway types.NamespacedName) {
	for source := range f.byGateway[gateway] {
		f.remove(gateway, source)
	}
}

func addTo[A, B comparable](sets map[A]map[B]bool, set A, element B) {
	if sets[set] == nil {
		sets[set] = map[B]bool{}
	}
	sets[set][element] = true
}

func removeFrom[A, B comparable](sets map[A]map[B]bool, set A, element B) {
	if delete(sets[set], element); len(sets[set]) == 0 {
		delete(sets, set)
	}
}

// of returns the Gateways that follow the source.
func (f followers) of(source envoy.EndpointSource) []followed {
	var found []followed
	for gateway := range f.bySource[source] {
		found = append(found, followed{gateway, source})
	}
	return found
}

// all returns all Gateways that follow endpoints.
func (f followers) all() []followed {
	found := make([]followed, 0, len(f.byGateway))
	for gateway := range f.byGateway {
		found = append(found, followed{gateway: gateway})
	}
	return found
}
