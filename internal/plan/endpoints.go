package plan

import (
	"context"
	"maps"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/kinds"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// ReadEndpoints reads the EndpointSlices of the Services and ServiceImports to which Envoy
// sends the request. [Plan.Explain] then names their endpoints. Manifests often contain no
// EndpointSlices, so it then says nothing about endpoints.
func (p *Plan) ReadEndpoints(ctx context.Context, source *state.Source, request routing.Request) error {
	var clusters []envoy.EndpointsOf
	for i := range p.Gateways {
		g := &p.Gateways[i]
		received, err := request.For(p.dataPlanes[g.DataPlane])
		if err != nil || g.DataPlane != v1alpha1.DataPlaneEnvoy {
			continue
		}
		for _, b := range backendsOf(g.result.Trace(received).Answer) {
			if b.Status == 0 && b.Backend.IPs == "" {
				clusters = append(clusters, endpointsOf(b.Backend))
			}
		}
	}
	found, err := readEndpoints(ctx, source, clusters)
	if err != nil {
		return err
	}
	maps.DeleteFunc(found, func(from envoy.EndpointSource, _ []*discoveryv1.EndpointSlice) bool {
		return source.Unlisted(kinds.EndpointSlice, from.Namespace)
	})
	if !source.Live {
		maps.DeleteFunc(found, func(_ envoy.EndpointSource, all []*discoveryv1.EndpointSlice) bool { return len(all) == 0 })
	}
	p.endpoints = found
	return nil
}

func endpointsOf(b routing.Backend) envoy.EndpointsOf {
	return envoy.EndpointsOf{Service: b.Service, Import: b.Import}
}

// backendsOf returns the backends of an entry, which can be nil.
func backendsOf(e *routing.Entry) []routing.WeightedBackend {
	if e == nil || e.Action.Forward == nil {
		return nil
	}
	return e.Action.Forward.Backends
}

// addEndpoints adds the endpoints that [Plan.ReadEndpoints] has read to the answer.
func (p *Plan) addEndpoints(g *Gateway, e *routing.Entry, a *Answer) {
	if g.DataPlane != v1alpha1.DataPlaneEnvoy {
		return
	}
	for i, b := range backendsOf(e) {
		if endpointSlices, ok := p.endpoints[endpointsOf(b.Backend).Source()]; ok && b.Status == 0 {
			found := envoy.AddressesOf(b.Backend, endpointSlices)
			a.Backends[i].Endpoints, a.Backends[i].ClusterIP = &found, envoy.ClusterIPOf(g.result.Table, e, b.Backend)
		}
	}
}
