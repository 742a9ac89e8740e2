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

// add adds sources that the Gateway follows.
func (f followers) add(gateway types.NamespacedName, sources map[envoy.EndpointSource][]envoy.EndpointsOf) {
	known := f.byGateway[gateway]
	if known == nil && len(sources) > 0 {
		known = make(map[envoy.EndpointSource]bool, len(sources))
		f.byGateway[gateway] = known
	}
	for source := range sources {
		if known[source] {
			continue // most sources
		}
		known[source] = true
		if f.bySource[source] == nil {
			f.bySource[source] = map[types.NamespacedName]bool{}
		}
		f.bySource[source][gateway] = true
	}
}

// retain removes the sources that the Gateway follows, except for these, all of which it follows.
func (f followers) retain(gateway types.NamespacedName, sources map[envoy.EndpointSource][]envoy.EndpointsOf) {
	known := f.byGateway[gateway]
	if len(known) == len(sources) {
		return // there are no others
	}
	for source := range known {
		if _, isRetained := sources[source]; isRetained {
			continue
		}
		delete(known, source)
		delete(f.bySource[source], gateway)
		if len(f.bySource[source]) == 0 {
			delete(f.bySource, source)
		}
	}
	if len(known) == 0 {
		delete(f.byGateway, gateway)
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
