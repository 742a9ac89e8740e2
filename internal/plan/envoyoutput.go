package plan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/terminal"
)

// envoyOutput is the configuration for one Gateway's Envoy.
type envoyOutput struct {
	static, discovery []byte
	// byName are the Services whose addresses Envoy looks up, with their DNS names, and
	// unready the Services without endpoints.
	byName, unready []string
}

// RenderEnvoy renders the Envoy configuration for the plan's only Gateway. It reads
// EndpointSlices from objects.
func (p *Plan) RenderEnvoy(ctx context.Context, objects client.Reader) error {
	g, err := p.envoyGateway()
	if err != nil {
		return err
	}
	resources := envoy.Render(g.envoyTable())
	endpoints, err := readEndpoints(ctx, objects, resources.Endpoints)
	if err != nil {
		return err
	}
	isReserved := func(string) bool { return false } // a plan does not know the addresses of connectors
	assignments := resources.Assign(func(source envoy.EndpointSource) []*discoveryv1.EndpointSlice { return endpoints[source] }, isReserved)
	rendered := &envoyOutput{}
	if rendered.static, err = envoy.EncodeStatic(resources, assignments); err != nil {
		return err
	}
	if rendered.discovery, err = envoy.EncodeDiscovery(resources, assignments); err != nil {
		return err
	}
	for _, b := range resources.ByName {
		rendered.byName = append(rendered.byName, b.Service.String())
	}
	reported := map[envoy.EndpointSource]bool{}
	for _, e := range resources.Endpoints {
		if assignments.IsEmpty(e.Cluster) && !reported[e.Source()] {
			reported[e.Source()] = true
			rendered.unready = append(rendered.unready, e.Source().String())
		}
	}
	p.envoy = rendered
	return nil
}

// envoyGateway returns the plan's only Gateway. The error explains why it has no Envoy
// configuration.
func (p *Plan) envoyGateway() (*Gateway, error) {
	switch len(p.Gateways) {
	case 0:
		return nil, errors.New(strings.TrimSuffix(p.noGatewayMessage(Style{}, nil), "."))
	case 1:
	default:
		names := make([]string, len(p.Gateways))
		for i, g := range p.Gateways {
			names[i] = g.Namespace + "/" + g.Name
		}
		return nil, fmt.Errorf("an Envoy configuration belongs to one Gateway; select it with --gateway: %s", strings.Join(names, ", "))
	}
	g := &p.Gateways[0]
	name := fmt.Sprintf("Gateway %s/%s", g.Namespace, g.Name)
	switch rejected := g.result.Rejected; {
	case rejected != nil:
		return nil, fmt.Errorf("%s is not accepted, so it has no Envoy configuration: %s: %s", name, rejected.Reason, strings.TrimSuffix(rejected.Message, "."))
	case g.envoyTable() == nil:
		return nil, fmt.Errorf("%s has the data plane %s; %s", name, g.DataPlane, g.howToUseEnvoy())
	default:
		return g, nil
	}
}

// envoyTable returns the routing table that Envoy serves, now or after a change to
// Envoy, or nil.
func (g *Gateway) envoyTable() *routing.Table {
	switch {
	case g.DataPlane == v1alpha1.DataPlaneEnvoy:
		return g.result.Table
	case g.DataPlaneChange != nil && g.DataPlaneChange.To == v1alpha1.DataPlaneEnvoy:
		return g.other().Result.Table
	default:
		return nil
	}
}

// howToUseEnvoy describes where to set the data plane.
func (g *Gateway) howToUseEnvoy() string {
	if object, ok := settings.ClassParameters(g.class); ok {
		return fmt.Sprintf("set spec.dataPlane to Envoy in TunnelConfiguration %s of GatewayClass %s", object, g.class.Name)
	}
	return fmt.Sprintf("set the annotation %s of GatewayClass %s to Envoy", v1alpha1.DataPlaneAnnotation, g.class.Name)
}

// readEndpoints returns the EndpointSlices of the Services and ServiceImports.
func readEndpoints(ctx context.Context, objects client.Reader, all []envoy.EndpointsOf) (map[envoy.EndpointSource][]*discoveryv1.EndpointSlice, error) {
	found := map[envoy.EndpointSource][]*discoveryv1.EndpointSlice{}
	for _, e := range all {
		if _, ok := found[e.Source()]; ok {
			continue
		}
		endpointSlices, err := state.Endpoints(ctx, objects, e.Service, e.Import)
		if err != nil {
			return nil, err
		}
		found[e.Source()] = endpointSlices
	}
	return found, nil
}

// WriteEnvoy prints a configuration with which an Envoy serves the Gateway, after
// [Plan.RenderEnvoy].
func (p *Plan) WriteEnvoy(w io.Writer) error {
	_, err := w.Write(terminal.EscapeJSON(p.envoy.static))
	return err
}

// WriteEnvoyRoutes prints the resources that an Envoy gets by xDS, after
// [Plan.RenderEnvoy].
func (p *Plan) WriteEnvoyRoutes(w io.Writer) error {
	_, err := w.Write(terminal.EscapeJSON(p.envoy.discovery))
	return err
}

// WriteEnvoyWarnings prints what [Plan.RenderEnvoy] lacks.
func (p *Plan) WriteEnvoyWarnings(w io.Writer, style Style) {
	if p.envoy == nil {
		return
	}
	if services := p.envoy.byName; len(services) > 0 {
		terminal.Printf(w, "warning: no clusterIP in the manifests of these Services, so Envoy looks up their DNS names: %s\n", style.abbreviate(services))
	}
	if services := p.envoy.unready; len(services) > 0 {
		terminal.Printf(w, "warning: no endpoints in the EndpointSlices of these Services, so Envoy returns 503 for requests to them: %s\n", style.abbreviate(services))
	}
}
