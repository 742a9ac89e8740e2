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

// set replaces the Gateway's sources. It keeps the map.
func (f followers) set(gateway types.NamespacedName, sources map[envoy.EndpointSource]bool) {
	for source := range f.byGateway[gateway] {
		if sources[source] {
			continue
		}
		delete(f.bySource[source], gateway)
		if len(f.bySource[source]) == 0 {
			delete(f.bySource, source)
		}
	}
	for source := range sources {
		if f.bySource[source] == nil {
			f.bySource[source] = map[types.NamespacedName]bool{}
		}
		f.bySource[source][gateway] = true
	}
	if len(sources) == 0 {
		delete(f.byGateway, gateway)
		return
	}
	f.byGateway[gateway] = sources
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
