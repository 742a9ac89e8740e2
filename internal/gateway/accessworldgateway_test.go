package gateway_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ownership"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

// protectedGateway is a Gateway with its tunnel, its Envoys and what the leader remembers.
type protectedGateway struct {
	*protectedWorld
	name          types.NamespacedName
	object        *gatewayv1.Gateway
	sets          []*gatewayv1.ListenerSet
	routes        []*gatewayv1.HTTPRoute
	configuration *v1alpha1.TunnelConfiguration
	plane         v1alpha1.DataPlane
	// actual is the configuration at Cloudflare, with its rules, and served what the Envoys
	// have.
	actual *provider.Configuration
	rules  *simulator.Rules
	served *envoy.Resources
	// The rest is what the leader remembers.
	observed  ingress.Observed
	changes   ingress.AccessChanges
	published *envoy.Resources
	exposure  access.Exposure
	readsOnce bool
	inEffect  bool // whether the tunnel has the configuration that the leader wants
	result    *gateway.Result
	facts     access.Gateway
	due       time.Duration
	// known are the hostnames that the observer follows.
	known map[string]*followedHostname
}

func newProtectedGateway(w *protectedWorld, index int, plane v1alpha1.DataPlane) *protectedGateway {
	g := &protectedGateway{
		protectedWorld: w, plane: plane, name: types.NamespacedName{Namespace: "infra", Name: fmt.Sprint("gateway-", index)},
		known:  map[string]*followedHostname{},
		actual: &provider.Configuration{Ingress: []provider.IngressRule{{Service: "http_status:404"}}},
	}
	created := metav1.NewTime(worldStart.Add(time.Duration(index) * time.Minute))
	all := gatewayv1.NamespacesFromAll
	g.object = &gatewayv1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: g.name.Namespace, Name: g.name.Name, CreationTimestamp: created, Generation: 1}}
	g.object.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &all}}
	for _, owner := range worldOwners {
		meta := metav1.ObjectMeta{Namespace: owner, Name: fmt.Sprintf("set-%d", index), CreationTimestamp: created, Generation: 1}
		parent := gatewayv1.ParentReference{Name: gatewayv1.ObjectName(g.name.Name)}
		if owner != "infra" {
			g.sets = append(g.sets, &gatewayv1.ListenerSet{ObjectMeta: meta, Spec: gatewayv1.ListenerSetSpec{
				ParentRef: gatewayv1.ParentGatewayReference{Name: gatewayv1.ObjectName(g.name.Name), Namespace: new(gatewayv1.Namespace("infra"))},
			}})
			parent = gatewayv1.ParentReference{Kind: new(gatewayv1.Kind("ListenerSet")), Name: gatewayv1.ObjectName(meta.Name)}
		}
		route := &gatewayv1.HTTPRoute{ObjectMeta: meta}
		route.Spec.ParentRefs = []gatewayv1.ParentReference{parent}
		route.Spec.Rules = []gatewayv1.HTTPRouteRule{{BackendRefs: webBackend()}}
		g.routes = append(g.routes, route)
	}
	g.configuration = configuration("infra", "own", v1alpha1.TunnelConfigurationSpec{})
	g.configuration.CreationTimestamp = created
	for _, owner := range worldOwners {
		for range 2 {
			g.toggleListener(owner)
		}
		g.changeRoute(owner)
	}
	g.forget()
	return g
}

// forget removes what only a process knows.
func (g *protectedGateway) forget() {
	g.observed, g.changes, g.published, g.exposure = ingress.Observed{}, ingress.AccessChanges{}, nil, access.Exposure{}
	g.readsOnce, g.inEffect, g.due = false, false, 0
	g.facts = access.Gateway{NamespacedName: g.name, Created: g.object.CreationTimestamp.Time, Class: "tunnel", State: ownership.Unknown, HasTunnel: true}
}

func (g *protectedGateway) applications() settings.Applications {
	set, _ := settings.ClassApplications(settings.Input{
		Class: g.snapshot(g, true).Class, ClassConfiguration: g.class, ControllerNamespace: "platform",
	})
	return set
}

// toggleListener adds or removes a listener of the owner.
func (g *protectedGateway) toggleListener(owner string) {
	index := g.IntN(len(worldPools[owner]))
	hostname, name := worldPools[owner][index], gatewayv1.SectionName(fmt.Sprint("l", index))
	listener := gatewayv1.Listener{Name: name, Port: 80, Protocol: gatewayv1.HTTPProtocolType}
	if hostname != "" {
		listener.Hostname = new(gatewayv1.Hostname(hostname))
	}
	if owner == "infra" {
		listeners := g.object.Spec.Listeners
		kept := slices.DeleteFunc(slices.Clone(listeners), func(l gatewayv1.Listener) bool { return l.Name == name })
		if len(kept) == len(listeners) {
			kept = append(kept, listener)
		}
		g.object.Spec.Listeners = kept
		return
	}
	set := g.sets[slices.IndexFunc(g.sets, func(s *gatewayv1.ListenerSet) bool { return s.Namespace == owner })]
	kept := slices.DeleteFunc(slices.Clone(set.Spec.Listeners), func(l gatewayv1.ListenerEntry) bool { return l.Name == name })
	if len(kept) == len(set.Spec.Listeners) {
		kept = append(kept, gatewayv1.ListenerEntry(listener))
	}
	set.Spec.Listeners = kept
}

// changeRoute changes the hostnames and the rules of the owner's route.
func (g *protectedGateway) changeRoute(owner string) {
	route := g.routes[slices.Index(worldOwners, owner)]
	route.Spec.Hostnames = nil
	for _, hostname := range worldRouteHostnames[owner] {
		if g.chance(40) {
			route.Spec.Hostnames = append(route.Spec.Hostnames, gatewayv1.Hostname(hostname))
		}
	}
	path := []string{"/", "/x"}[g.IntN(2)]
	route.Spec.Rules[0].Matches = []gatewayv1.HTTPRouteMatch{{Path: pathMatch(gatewayv1.PathMatchPathPrefix, path)}}
}

// reconcile decides about the Gateway, publishes the routes and writes the configuration, in
// the order of the controller.
func (g *protectedGateway) reconcile() {
	g.due = 0
	if !g.readsOnce && !g.read() {
		return // a process publishes nothing before it has read the rules
	}
	s := g.snapshot(g, false)
	s.Access = access.Known{
		Uptime: g.uptime, Read: g.report.Read, Verdicts: g.report.Gateways[g.name], Tagged: g.report.Tagged, Allows: g.report.Allows,
		InEffect: ingress.InEffect(*g.observed.Last), InEffectKnown: true, Exposure: g.exposure,
	}
	g.result = gateway.Build(s, worldOptions())
	if g.result.Table == nil {
		g.Fatalf("the Gateway is rejected: %+v", g.result.Rejected)
	}
	desired := ingress.Render(g.plane, g.result.Table, nil).Configuration()
	g.publish(desired)
	g.put(desired)
	g.publish(desired)
	g.inEffect = g.observed.Known && g.observed.Last.Hash() == desired.Hash()
	g.exposure = g.exposure.Next(g.result.Demanded, g.result.AccessStates, g.inEffect, g.uptime)
	g.observeOpen()
	for _, state := range g.result.AccessStates {
		if state.Until > 0 && (g.due <= g.uptime || state.Until < g.due) {
			g.due = state.Until
		}
	}
	g.record()
}

// observeOpen follows which hostnames the leader serves open, also if it cannot know the demand.
func (g *protectedGateway) observeOpen() {
	for _, hostname := range g.result.Demanded.Hostnames {
		if g.inEffect && g.result.Table.Access.Of(hostname) == nil {
			f := g.followed(hostname)
			f.open, f.openLeader = true, g.leader
			g.seen.open++
		}
	}
}

// publish gives the Envoys their routes.
func (g *protectedGateway) publish(desired *provider.Configuration) {
	if g.plane != v1alpha1.DataPlaneEnvoy {
		return
	}
	g.observed.OpenSince = g.exposure.OpenSince()
	var x ingress.Exposure
	g.changes, x = g.changes.Next(g.result.Table, *desired, g.observed, g.published, g.uptime)
	g.published = envoy.RenderTransition(g.result.Table, x.Transition, g.published)
	g.served, g.due = g.published, x.Until
}

// put writes the configuration. It can fail, and its answer can get lost.
func (g *protectedGateway) put(desired *provider.Configuration) {
	if !g.observed.Known && !g.read() {
		return
	}
	if g.result.Paused || g.observed.Last.Hash() == desired.Hash() {
		return
	}
	switch {
	case g.tunnelsFail:
		g.observed.Known = false
		return
	case g.loses && g.chance(30):
		g.observed.Known = false
		g.observed.Late = []string{desired.Hash()}
	default:
		g.observed = ingress.Observed{Last: desired, Known: true}
	}
	g.setActual(desired)
	g.seen.puts++
}

func (g *protectedGateway) setActual(c *provider.Configuration) {
	g.actual, g.rules = c, compile(g.T, c)
}

// read reads the configuration.
func (g *protectedGateway) read() bool {
	if g.tunnelsFail {
		return false
	}
	g.observed, g.readsOnce = ingress.Observed{Last: g.actual, Known: true}, true
	return true
}

// record tells the executor what the decision demands.
func (g *protectedGateway) record() {
	g.facts.State = ownership.Accepted
	if g.result.Paused {
		g.facts.State = ownership.Frozen
	}
	g.facts.DemandsUnknown = g.result.Demanded.Unknown
	g.facts.Demands, g.facts.Hostnames = g.result.AccessDemands(), g.result.AccessHostnames()
	g.facts.InEffect, g.facts.InEffectKnown = nil, g.observed.Known
	for _, rule := range ingress.InEffect(*g.observed.Last) {
		if rule.DemandsToken() {
			g.facts.InEffect = append(g.facts.InEffect, rule.AUDTags...)
		}
	}
	slices.Sort(g.facts.InEffect)
}

// ruleFor returns the hostname of the rule that a request meets.
func (g *protectedGateway) ruleFor(host, path string) string {
	if g.rules == nil {
		g.rules = compile(g.T, g.actual)
	}
	index, _, _ := g.rules.Match(host, path)
	return g.actual.Ingress[index].Hostname
}

// visit returns the AUD tags of which a request needs a token in the tunnel, and whether it
// reaches a backend with one; needs is nil if it needs none.
func (g *protectedGateway) visit(host, path string) (needs []string, forwarded bool) {
	if g.rules == nil {
		g.rules = compile(g.T, g.actual)
	}
	index, service, _ := g.rules.Match(host, path)
	if a := g.actual.Ingress[index].OriginRequest.Access; a != nil && a.Required {
		needs = a.AUDTag
	}
	switch {
	case strings.HasPrefix(service, "http_status:"):
		return needs, false
	case !strings.HasPrefix(service, "http://127.0.0.1:"):
		return needs, true
	case g.served == nil:
		return needs, false // no Envoy has routes yet
	}
	listener := envoy.Whole(envoy.ListenerOpen, g.served.Routes)
	if strings.HasSuffix(service, fmt.Sprint(envoy.PortProtected)) {
		if listener = envoy.Whole(envoy.ListenerProtected, g.served.Routes); !permittedHost.MatchString(host) {
			return needs, false
		}
	}
	answer := newEnvoyMatcher(listener, g.served).describeAnswer(routing.Request{Host: strings.ToLower(host), Path: path})
	return needs, strings.Contains(answer, " to ")
}
