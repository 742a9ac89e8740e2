package controller

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/connector"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/xds"
)

// xdsServer serves resources to Envoys. [xds.Server] implements it.
type xdsServer interface {
	Publish(xds.Publication) error
	PublishEndpoints(gateway types.NamespacedName, tunnel types.UID, a envoy.Assignments)
	Subscriptions(gateway types.NamespacedName, source envoy.EndpointSource) xds.Subscriptions
	Subscribers(source envoy.EndpointSource) []types.NamespacedName
	PublishByName(gateway types.NamespacedName, number uint64, a envoy.Assignments)
	Remove(gateway types.NamespacedName)
	// Withhold forgets the publication. The Envoys' streams stay open without a
	// response.
	Withhold(gateway types.NamespacedName)
	State(gateway types.NamespacedName) xds.State
}

// envoys publishes the routes and endpoints that Envoys serve.
type envoys struct {
	server xdsServer
	reader client.Reader // the cache
	live   client.Reader // the API server
	// namespace is the controller's own namespace, which contains the connectors.
	namespace string
	// podIP is the address of the controller's pod. Pods in the cluster have addresses with
	// the same IP version in the first place.
	podIP netip.Addr
	// podIPs are all addresses of the controller's pod.
	podIPs []netip.Addr
	assign assigner
	// uptime returns how long this process has run.
	uptime   func() time.Duration
	memories *memories
}

// publication is the last publication for a Gateway.
type publication struct {
	// mu orders the publications and the reads of EndpointSlices. The cache and the server do no
	// I/O. It is not locked while endpoints are assigned, because tenants decide how many
	// EndpointSlices there are.
	mu        sync.Mutex
	tunnel    types.UID
	resources *envoy.Resources // nil before the first publication
	next      *envoy.Resources // for the publication in progress, or nil
	client    *clientSecret    // for resources; nil without a client certificate
	// reads counts how often EndpointSlices were read, and assigned has the newest
	// endpoints for the clusters in resources and next.
	reads    int64
	assigned map[string]assignment
	// hasOtherLimits reports whether an assignment can have another limit than its cluster has in
	// resources.
	hasOtherLimits bool
	// published are the endpoints that were published with resources, or nil if they must be collected
	// again. newer are the clusters whose endpoints in assigned may be newer.
	published envoy.Assignments
	newer     map[string]bool
	// removed reports whether the Gateway no longer has Envoys.
	removed bool
	// sequence counts how often the listeners changed. Programmed waits until Envoys
	// have acknowledged the first publication for the present listeners.
	sequence  int64
	listeners string
	// ready describes the Envoys' listener for probes.
	ready envoy.ReadyOptions
	// changes and exposure describe the hostnames whose Access settings change.
	changes  ingress.AccessChanges
	exposure ingress.Exposure
}

func newEnvoys(d dependencies, o Options, m *memories) *envoys {
	return &envoys{
		server: d.xds, reader: d.reader(), live: d.live, namespace: o.Namespace, podIP: o.PodIP, podIPs: o.PodIPs, assign: envoy.Assign, uptime: d.clock.uptime, memories: m,
	}
}

// publish publishes the routing table in the plane for the Tunnel's Envoys. observed is
// what is known about the tunnel's configuration, which leads each hostname to one of
// the listeners. The server refuses a publication that is not valid, and reports it in
// its state.
func (e *envoys) publish(ctx context.Context, r *run, plane *decision.Plane, object *v1alpha1.Tunnel, observed ingress.Observed) (settled bool, err error) {
	p := e.memories.publicationOf(r.key.NamespacedName)
	next, err := e.prepare(ctx, p, r, plane, object, observed)
	if err != nil {
		return false, err
	}
	found := next.read.assign(e.assign)
	secret, err := e.readClientSecret(ctx, next.client, next.certificate)
	p.mu.Lock()
	defer p.mu.Unlock()
	newer := p.keep(ctx, found)
	if err != nil {
		e.abandon(r.key.NamespacedName, p, newer)
		return false, err
	}
	assignments := p.assignments(p.next)
	ready := envoy.ReadyOptions{Metrics: connector.ServesMetrics(connectorSettings(r.decision.Settings())), IPv6: e.podIP.Is6()}
	err = e.server.Publish(xds.Publication{
		Gateway: r.key.NamespacedName, Tunnel: object.UID, Sequence: p.sequence, WantsAcknowledgement: !next.exposure.IsSettled() || isStarting(object),
		Listeners: envoy.Listeners(ready, p.next.Telemetry), Resources: p.next, Secrets: secret.resources(), Assignments: assignments,
	})
	if err != nil {
		e.abandon(r.key.NamespacedName, p, newer)
		log.FromContext(ctx).Error(err, "the Envoy configuration is not valid; Envoys keep the previous configuration")
		return true, nil
	}
	last := p.resources
	p.tunnel, p.ready, p.resources, p.changes, p.exposure = object.UID, ready, p.next, next.changes, next.exposure
	p.client, p.published, p.newer = secret, assignments, nil
	e.memories.unfollow(r.key.NamespacedName, p, p.complete(last))
	return next.exposure.IsSettled(), nil
}

// prepared is the next publication, whose resources the publication already has.
type prepared struct {
	changes  ingress.AccessChanges
	exposure ingress.Exposure
	read     endpointsRead
	// certificate is the client certificate that the resources need, or nil, and client
	// what the last publication has.
	certificate *routing.ClientCertificate
	client      *clientSecret
}

// prepare renders the next publication's resources, and reads the EndpointSlices for the
// clusters without endpoints for their limit.
func (e *envoys) prepare(ctx context.Context, p *publication, r *run, plane *decision.Plane, object *v1alpha1.Tunnel, observed ingress.Observed) (next prepared, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next != nil { // after a panic
		e.abandon(r.key.NamespacedName, p, nil)
	}
	next.changes, next.exposure = p.expose(plane, object, observed, e.uptime())
	resources := envoy.RenderTransition(plane.Result.Table, next.exposure.Transition, p.resources)
	if listeners := describeListeners(r.gateway, plane.Result); p.listeners != listeners {
		p.listeners = listeners
		p.sequence++
	}
	next.certificate, next.client = resources.ClientCertificate, p.client
	outdated := p.expect(resources)
	// The Services are followed before their EndpointSlices are read, so that no change
	// is lost.
	e.memories.follow(r.key.NamespacedName, p, outdated)
	next.read, err = e.readEndpoints(ctx, p, outdated)
	if err != nil {
		e.abandon(r.key.NamespacedName, p, nil)
	}
	return next, err
}

// abandon ends a publication that has failed, and publishes the endpoints that it has read for the
// last publication. The caller has locked p.
func (e *envoys) abandon(gateway types.NamespacedName, p *publication, newer envoy.Assignments) {
	e.publishNewer(gateway, p, newer)
	p.published, p.hasOtherLimits = nil, true
	e.memories.unfollow(gateway, p, p.complete(p.next))
}

// hasPublished reports whether the Gateway's routes were published for Envoy.
func (e *envoys) hasPublished(gateway types.NamespacedName) bool {
	return e.memories.findPublication(gateway) != nil
}

// hasPublishedFor reports whether the Gateway's routes were published for the Envoys of the
// Tunnel.
func (e *envoys) hasPublishedFor(gateway types.NamespacedName, tunnel types.UID) bool {
	p := e.memories.findPublication(gateway)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tunnel == tunnel && p.resources != nil
}

// remove ends the streams for a Gateway that has no Tunnel or whose connectors have no
// Envoy.
func (e *envoys) remove(gateway types.NamespacedName) {
	e.forget(gateway)
	e.server.Remove(gateway)
}

// forget forgets the Gateway's publication, and reports whether there was one.
// Endpoints that are being assigned are not published later.
func (e *envoys) forget(gateway types.NamespacedName) bool {
	p := e.memories.takePublication(gateway)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = true
	return true
}

// describeListeners returns a text that changes with the generation of the Gateway or a
// ListenerSet, and when one of their listeners becomes accepted.
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
