package controller

import "k8s.io/apimachinery/pkg/types"

// followers has the Services to whose pods Gateways' Envoys connect, in both directions:
// an EndpointSlice changes often, and must not lead to a search in all Gateways.
type followers struct {
	byGateway, byService map[types.NamespacedName]map[types.NamespacedName]bool
}

func newFollowers() followers {
	return followers{map[types.NamespacedName]map[types.NamespacedName]bool{}, map[types.NamespacedName]map[types.NamespacedName]bool{}}
}

// set replaces the Gateway's Services. It keeps the map.
func (f followers) set(gateway types.NamespacedName, services map[types.NamespacedName]bool) {
	for service := range f.byGateway[gateway] {
		if services[service] {
			continue
		}
		delete(f.byService[service], gateway)
		if len(f.byService[service]) == 0 {
			delete(f.byService, service)
		}
	}
	for service := range services {
		if f.byService[service] == nil {
			f.byService[service] = map[types.NamespacedName]bool{}
		}
		f.byService[service][gateway] = true
	}
	if len(services) == 0 {
		delete(f.byGateway, gateway)
		return
	}
	f.byGateway[gateway] = services
}

// of returns the Gateways that follow the Service.
func (f followers) of(service types.NamespacedName) []followed {
	var found []followed
	for gateway := range f.byService[service] {
		found = append(found, followed{gateway, service})
	}
	return found
}

// all returns all Gateways that follow Services.
func (f followers) all() []followed {
	found := make([]followed, 0, len(f.byGateway))
	for gateway := range f.byGateway {
		found = append(found, followed{gateway: gateway})
	}
	return found
}
