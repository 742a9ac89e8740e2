package controller

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// xdsServer serves resources to the Envoys of Gateways. [xds.Server] implements it.
type xdsServer interface {
	Publish(xds.Publication) error
	PublishEndpoints(gateway types.NamespacedName, tunnel types.UID, a envoy.Assignments)
	// Await returns when every connected Envoy has acknowledged the last publication, and
	// after two seconds at the latest.
	Await(ctx context.Context, gateway types.NamespacedName)
	// IsAcknowledged reports whether every connected Envoy has acknowledged the last
	// publication.
	IsAcknowledged(gateway types.NamespacedName) bool
	Remove(gateway types.NamespacedName)
	State(gateway types.NamespacedName) xds.State
}

// envoys publishes the routes and endpoints that the Envoys of Gateways serve.
type envoys struct {
	server xdsServer
	reader client.Reader // the cache
	// namespace is the controller's own namespace, which contains the connectors.
	namespace string

	mu        sync.Mutex
	published map[types.NamespacedName]*publication
}

// publication is the last publication for a Gateway.
type publication struct {
	// mu orders the publications: the newest contains the newest EndpointSlices. The cache
	// and the server do no I/O.
	mu        sync.Mutex
	tunnel    types.UID
	resources *envoy.Resources // nil before the first publication
	// sequence counts the changes of the listeners. Programmed waits until Envoys have
	// acknowledged the first publication for the present listeners.
	sequence  int64
	listeners string
	// services are the clusters whose endpoints are those of a Service.
	services map[types.NamespacedName][]envoy.EndpointsOf
	// limited are the clusters with more endpoints than Envoy gets.
	limited map[string]bool
}

func newEnvoys(server xdsServer, reader client.Reader, namespace string) *envoys {
	return &envoys{server: server, reader: reader, namespace: namespace, published: map[types.NamespacedName]*publication{}}
}

// of returns the publication of the Gateway, and creates it if necessary.
func (e *envoys) of(gateway types.NamespacedName) *publication {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.published[gateway]
	if p == nil {
		p = &publication{limited: map[string]bool{}}
		e.published[gateway] = p
	}
	return p
}

// publish publishes the routing table of the plan for the Envoys of the Tunnel. current is
// the configuration of the tunnel at Cloudflare, or nil if it is unknown. It reports whether
// hostnames move from one listener to the other; both serve them until the tunnel has the
// desired configuration. The server refuses a publication that is not valid, and reports it in
// its state.
func (e *envoys) publish(ctx context.Context, t target, plan planned, object *v1alpha1.Tunnel, current *provider.Configuration) (moving bool, err error) {
	p := e.of(t.key.NamespacedName)
	p.mu.Lock()
	defer p.mu.Unlock()
	hostnames := p.moving(plan, object, current)
	resources := envoy.RenderMoving(plan.result.Table, hostnames, p.resources)
	if listeners := describeListeners(t.gateway, plan.result); p.listeners != listeners {
		p.listeners = listeners
		p.sequence++
	}
	assignments, err := e.assign(ctx, p, resources.Endpoints)
	if err != nil {
		return false, err
	}
	maps.DeleteFunc(p.limited, func(cluster string, _ bool) bool { return assignments[cluster] == nil })
	err = e.server.Publish(xds.Publication{
		Gateway: t.key.NamespacedName, Tunnel: object.UID, Sequence: p.sequence, Resources: resources, Assignments: assignments,
	})
	if err != nil {
		log.FromContext(ctx).Error(err, "the configuration for Envoy is not valid; Envoys keep the previous one")
		return false, nil
	}
	p.tunnel, p.resources = object.UID, resources
	p.services = make(map[types.NamespacedName][]envoy.EndpointsOf, len(resources.Endpoints))
	for _, cluster := range resources.Endpoints {
		p.services[cluster.Service] = append(p.services[cluster.Service], cluster)
	}
	return len(hostnames) > 0, nil
}

// everyHostname is a wildcard for all hostnames.
var everyHostname = map[string]bool{"": true}

// moving returns the hostnames that both listeners serve until the tunnel has the desired
// configuration. While no request reaches Envoy, no hostname moves.
func (p *publication) moving(plan planned, object *v1alpha1.Tunnel, current *provider.Configuration) map[string]bool {
	if !leadsToEnvoy(object) || current != nil && plan.has(current.Hash()) {
		return nil
	}
	var served ingress.Served
	recorded := object.Status.Configuration.Hash
	switch {
	case p.tunnel == object.UID && p.resources != nil:
		served.Open, served.Protected = p.resources.Served()
	case current == nil && recorded != "" && !plan.has(recorded):
		// An earlier process may have waited to end the Access of any hostname.
		served.Protected = everyHostname
	}
	return ingress.Moving(plan.result.Table, current, served)
}

// leadsToEnvoy reports whether the configuration of the tunnel can lead requests to Envoy.
func leadsToEnvoy(object *v1alpha1.Tunnel) bool {
	change := object.Status.DataPlaneChange
	return tunnel.RecordedDataPlane(object) == v1alpha1.DataPlaneEnvoy || change != nil && change.Phase == v1alpha1.DataPlaneSwitching
}

// publishEndpoints publishes the current endpoints of a Service for the Envoys of a Gateway.
func (e *envoys) publishEndpoints(ctx context.Context, f followed) error {
	p := e.find(f.gateway)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	assignments, err := e.assign(ctx, p, p.services[f.service])
	if err == nil && len(assignments) > 0 {
		e.server.PublishEndpoints(f.gateway, p.tunnel, assignments)
	}
	return err
}

// assign returns the endpoints of the clusters from the EndpointSlices in the cache.
func (e *envoys) assign(ctx context.Context, p *publication, clusters []envoy.EndpointsOf) (envoy.Assignments, error) {
	if len(clusters) == 0 {
		return nil, nil
	}
	reserved, err := e.connectorAddresses(ctx)
	if err != nil {
		return nil, err
	}
	assignments := make(envoy.Assignments, len(clusters))
	for _, cluster := range clusters {
		var list discoveryv1.EndpointSliceList
		if err := e.reader.List(ctx, &list, client.MatchingFields{state.IndexService: cluster.Service.String()}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list the EndpointSlices of Service %s: %w", cluster.Service, err)
		}
		slices := make([]*discoveryv1.EndpointSlice, len(list.Items))
		for i := range list.Items {
			slices[i] = &list.Items[i]
		}
		assignment, omitted := envoy.Assign(cluster, slices, func(ip string) bool { return reserved[ip] })
		assignments[cluster.Cluster] = assignment
		p.reportLimit(ctx, cluster, omitted)
	}
	return assignments, nil
}

// reportLimit logs when Envoy begins to get only a part of the endpoints of a cluster.
func (p *publication) reportLimit(ctx context.Context, cluster envoy.EndpointsOf, omitted int) {
	if omitted > 0 && !p.limited[cluster.Cluster] {
		log.FromContext(ctx).Info("Envoy does not use all endpoints of a Service, because the clusters of its namespace share a limit",
			"service", cluster.Service, "port", cluster.PortName, "used", cluster.Limit, "omitted", omitted)
	}
	if omitted > 0 {
		p.limited[cluster.Cluster] = true
	} else {
		delete(p.limited, cluster.Cluster)
	}
}

// connectorAddresses returns the addresses of the connectors' pods. No Service may lead to
// them: the owner of a Service can write its EndpointSlices.
func (e *envoys) connectorAddresses(ctx context.Context) (map[string]bool, error) {
	var pods corev1.PodList
	if err := e.reader.List(ctx, &pods, client.InNamespace(e.namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the pods of the connectors: %w", err)
	}
	addresses := map[string]bool{}
	for i := range pods.Items {
		if hasEnded(&pods.Items[i]) {
			continue
		}
		for _, ip := range pods.Items[i].Status.PodIPs {
			addresses[routing.CanonicalIP(ip.IP)] = true
		}
	}
	return addresses, nil
}

// serve reports whether routes of the Gateway were published for Envoy.
func (e *envoys) serve(gateway types.NamespacedName) bool { return e.find(gateway) != nil }

// find returns the publication of the Gateway, or nil if nothing was published for it.
func (e *envoys) find(gateway types.NamespacedName) *publication {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.published[gateway]
}

// remove ends the streams of a Gateway without a Tunnel.
func (e *envoys) remove(gateway types.NamespacedName) {
	e.mu.Lock()
	delete(e.published, gateway)
	e.mu.Unlock()
	e.server.Remove(gateway)
}

// followers returns the selected Services to whose pods Envoys connect, for each Gateway.
func (e *envoys) followers(selected func(service types.NamespacedName) bool) []followed {
	e.mu.Lock()
	all := maps.Clone(e.published)
	e.mu.Unlock()
	var found []followed
	for gateway, p := range all {
		p.mu.Lock()
		for service := range p.services {
			if selected(service) {
				found = append(found, followed{gateway, service})
			}
		}
		p.mu.Unlock()
	}
	return found
}

// acknowledges reports whether the sequence covers the present listeners of the Gateway.
func (e *envoys) acknowledges(gateway types.NamespacedName, sequence int64) bool {
	p := e.find(gateway)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sequence > 0 && sequence >= p.sequence
}

// describeListeners returns a text that changes with the generations of the Gateway and its
// ListenerSets, and when one of their listeners becomes accepted.
func describeListeners(g *gatewayv1.Gateway, result *gateway.Result) string {
	text := fmt.Appendf(nil, "%d", g.Generation)
	for _, set := range result.Sets {
		text = fmt.Appendf(text, " %s %d", set.UID(), set.Generation())
	}
	for _, l := range result.Listeners {
		text = strconv.AppendBool(append(text, ' '), l.Rejected == nil)
	}
	return string(text)
}

// state returns the state of the Gateway's Envoys for its conditions, or nil when no request
// reaches them and none will. change is the change of the data plane, or nil if it is unknown
// or there is none. last is the last known configuration of the tunnel, or nil.
func (e *envoys) state(t target, object *v1alpha1.Tunnel, change *tunnel.Change, last *provider.Configuration) *gateway.Envoys {
	serves := t.isFor(v1alpha1.DataPlaneEnvoy)
	if !serves && !isStarting(object) {
		return nil
	}
	s := e.server.State(t.key.NamespacedName)
	found := &gateway.Envoys{
		Connected: s.Connected, Known: s.Known, Published: s.Published, Late: s.Late, Rejected: s.Rejected,
		Acknowledged: e.acknowledges(t.key.NamespacedName, s.Acknowledged),
		Starting:     !serves,
	}
	if object != nil {
		found.Wanted = int(object.Status.Connectors.Desired)
	}
	switch {
	case !serves:
		if change != nil {
			found.Progress = change.Message
		}
	case object != nil && object.Status.DataPlaneChange == nil:
		found.Excess = t.excess()
	}
	if serves && t.configuration != nil && last != nil && !t.other.has(last.Hash()) {
		found.AccessPending = ingress.PendingAccess(*t.configuration, *last)
	}
	return found
}

// isStarting reports whether the Tunnel changes to Envoy, and still has ingress rules.
func isStarting(object *v1alpha1.Tunnel) bool {
	if object == nil || object.Status.DataPlaneChange == nil {
		return false
	}
	return object.Status.DataPlaneChange.To == v1alpha1.DataPlaneEnvoy
}

// delayChange reports whether a change to Envoy waits for acknowledgements that are expected
// soon.
func (e *envoys) delayChange(t target, object *v1alpha1.Tunnel) bool {
	s := e.server.State(t.key.NamespacedName)
	return isStarting(object) && !t.state.Paused && s.Rejected == "" && !s.Late
}

// facts returns the state of the Gateway's Envoys for decisions about the data plane.
func (e *envoys) facts(gateway types.NamespacedName) tunnel.Envoys {
	s := e.server.State(gateway)
	return tunnel.Envoys{Connected: s.Connected, Late: s.Late, Rejected: s.Rejected, Acknowledged: s.Published && e.server.IsAcknowledged(gateway)}
}
