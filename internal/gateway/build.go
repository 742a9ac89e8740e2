// Package gateway decides what a Gateway serves. [Build] takes a [Snapshot] of everything
// in the cluster that can affect one Gateway, and returns a [Result]: the effective
// listeners, the routing table and the status of every object.
//
// The package is pure: it uses no client, no context, no clock, no logger and no I/O.
// Build never changes the Snapshot, and the order in the Snapshot's slices does not
// affect the Result.
package gateway

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/limits"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Snapshot is everything that can affect one Gateway. Build does not change it.
type Snapshot struct {
	// Now is when the decision is made.
	Now     time.Time
	Gateway *gatewayv1.Gateway
	// Class is the Gateway's GatewayClass. Nil means a GatewayClass without parameters.
	Class *gatewayv1.GatewayClass
	// ClassConfiguration is the object that [settings.ClassParameters] returns. It is nil
	// when the GatewayClass has no parametersRef or the object does not exist.
	ClassConfiguration *v1alpha1.TunnelConfiguration
	// GatewayConfiguration is the object that [settings.GatewayParameters] returns.
	// It is nil when the Gateway has no parametersRef or the object does not exist.
	GatewayConfiguration *v1alpha1.TunnelConfiguration
	// ListenerSets are the ListenerSets whose parentRef names the Gateway, whether
	// or not the Gateway allows them.
	ListenerSets []*gatewayv1.ListenerSet
	// HTTPRoutes are the HTTPRoutes with a parentRef to the Gateway or to one of
	// the ListenerSets.
	HTTPRoutes []*gatewayv1.HTTPRoute
	// GRPCRoutes are the GRPCRoutes with a parentRef to the Gateway or to one of
	// the ListenerSets.
	GRPCRoutes []*gatewayv1.GRPCRoute
	// Grants are the ReferenceGrants in every namespace that a listener refers to, or a
	// route which [AdmitsRoute] reports.
	Grants []*gatewayv1beta1.ReferenceGrant
	// Certificates are what checking the Secrets that [SecretsToRead] returns found. A
	// Secret that does not exist has no entry.
	Certificates map[types.NamespacedName]Certificate
	// Namespaces are the namespaces that contain the Gateway, the ListenerSets and the
	// routes, by name.
	Namespaces map[string]*corev1.Namespace
	// Services are the Services that backendRefs name in the routes that [AdmitsRoute]
	// reports. Other routes need none.
	Services byname.Map[*corev1.Service]
	// EndpointSlices are the EndpointSlices for Services, by Service name.
	EndpointSlices byname.Map[[]*discoveryv1.EndpointSlice]
	// ServiceImports are the ServiceImports that backendRefs name in the same routes, and
	// ImportedSlices their EndpointSlices.
	ServiceImports map[types.NamespacedName]*multicluster.ServiceImport
	ImportedSlices map[types.NamespacedName][]*discoveryv1.EndpointSlice
	// NoServiceImports reports whether the cluster has no CRD for ServiceImports.
	NoServiceImports bool
	// Reserved are the canonical addresses of connectors and of the controller. No backend
	// may have them.
	Reserved map[string]bool
	// BackendTLSPolicies are the policies that target one of the Services, or whose status
	// has an entry for the Gateway by this controller.
	BackendTLSPolicies []*gatewayv1.BackendTLSPolicy
	// AccessPolicies are the policies that target the Gateway or one of the ListenerSets, or
	// whose status has an entry for the Gateway by this controller.
	AccessPolicies []*v1alpha1.AccessPolicy
	// AccessPoliciesUnknown reports whether AccessPolicies cannot be read, for example
	// because their CustomResourceDefinition is not served. No protection ends then.
	AccessPoliciesUnknown bool
	// Access is what is known about the applications.
	Access access.Known
	// CABundles are what reading the ConfigMaps that [CABundlesToRead] returns found. A
	// ConfigMap that does not exist has no entry.
	CABundles map[types.NamespacedName]CABundle
	// DataPlane is the data plane in effect. It is empty when the settings decide.
	DataPlane v1alpha1.DataPlane
	// Tunnel is the tunnel of the Gateway. It is empty until the controller has created
	// one.
	Tunnel provider.TunnelID
	// OlderGateways counts the older Gateways in the same namespace that this controller
	// manages.
	OlderGateways int
	// Orphans are the routes with a status entry from this controller whose spec names no
	// Gateway or ListenerSet that this controller manages.
	Orphans map[Owner]bool
	// OrphanedTunnels counts the Tunnels in the same namespace whose Gateway does not
	// exist or is not managed by this controller.
	OrphanedTunnels int
	// Conflicts are the conflicts with listeners that the snapshot lacks, by owner and
	// listener. It is nil in the controller, which reads all listeners.
	Conflicts map[Owner]map[gatewayv1.SectionName]*Problem
}

// Options are the controller options that affect decisions.
type Options struct {
	// ControllerName is the name of the controller in GatewayClasses and route statuses.
	ControllerName      gatewayv1.GatewayController
	ControllerNamespace string
	// ClusterDomain is the DNS domain of the cluster, without a leading or trailing dot.
	ClusterDomain string
	// DataPlanes describe what each data plane can express.
	DataPlanes routing.DataPlanes
}

// Result contains the decisions for one Gateway.
type Result struct {
	// Listeners are the effective listeners of all owners in order of precedence.
	Listeners []*Listener
	// Sets are the ListenerSets in order of precedence, allowed or not.
	Sets []*Set
	// Routes are the routes, oldest first.
	Routes []*Route
	// Rejected is why the Gateway is not accepted, or nil when it is accepted.
	Rejected *Problem
	// Settings are merged from the GatewayClass and the Gateway. They are nil when they
	// are not valid: the Gateway is then rejected, and its tunnel configuration stays
	// unchanged.
	Settings *settings.Settings
	// DNS are the DNS settings of the GatewayClass. They are known even when the Settings
	// are not valid, unless those of the GatewayClass are not; the mode is then empty.
	DNS settings.DNS
	// Applications are the settings of the GatewayClass for applications of Cloudflare
	// Access. They are known even when the Settings are not valid, unless those of the
	// GatewayClass are not; the mode is then empty.
	Applications settings.Applications
	// Demanded is what the hostnames demand of Cloudflare Access, and AccessStates is the
	// state of each hostname that demands an application, or about which applications
	// decide. The empty hostname has a state if it is closed.
	Demanded     access.Demanded
	AccessStates map[string]access.State
	// DataPlane is the data plane for which the routes are evaluated.
	DataPlane v1alpha1.DataPlane
	// Paused reports whether the Gateway is paused: it has the annotation
	// [v1alpha1.PausedAnnotation], and its GatewayClass permits that.
	Paused bool
	// Table is the routing table. It is nil when the Gateway is not accepted: the
	// data plane then keeps its last configuration.
	Table *routing.Table
	// Warnings are problems with an accepted Gateway that no condition reports.
	Warnings []Warning
	// ClaimedHostnames are the hostnames that an accepted Gateway's routes name, but
	// whose requests go to other listeners, the oldest route first.
	ClaimedHostnames []ClaimedHostnames
	// Usage describes how much of its GatewayClass limits the Gateway uses. It is nil
	// when the settings are not valid.
	Usage *Usage
	// Uncounted describes what the metrics by route do not count separately. It is nil
	// unless there are such metrics.
	Uncounted *Uncounted

	gateway    *gatewayv1.Gateway
	now        time.Time   // of the decision
	listeners  []*Listener // only on the Gateway itself
	controller gatewayv1.GatewayController
	translator translator
	permitted  *permittedHostnames
	accessible *accessTable // nil if the settings are not valid

	accessPolicies *accessPolicies // nil if there are none
	notAllowed     []*Listener     // that NotAllowedListeners has returned
	shares         shares
	policies       []PolicyStatus
	kept           *kept // nil without a Memory
	client         clientCertificate
}

// Problem is the reason and the message for a condition that reports a problem.
type Problem = settings.Problem

// Build makes all decisions for one Gateway. Each step uses the results from the steps
// before it.
func Build(s *Snapshot, o Options) *Result { return build(s, o, nil).Result }

// build takes over the translations and statuses that are the same in an earlier decision, which
// can be nil.
func build(s *Snapshot, o Options, before *earlier) *decision {
	d := newDecision(s, o)
	d.decideListeners()
	d.translateRoutes(before)
	d.policies = d.policyStatuses()
	groups := d.attachRoutes()
	var excess map[limits.Tenant]int
	d.shares, excess = d.limiter.divide(d.Routes, groups)
	if d.limiter.limitNotFoundRules(groups, excess) {
		// Decide again, because fewer listeners may claim their hostname.
		d.decideListeners()
		groups = d.attachRoutes()
		d.shares, _ = d.limiter.divide(d.Routes, groups) // the rules that still exceed a limit belong to the Gateway itself
	}
	d.removeRefused(groups)
	d.confineRoutes()
	d.Usage = d.limiter.newUsage(d, groups)
	for _, g := range groups {
		g.completeLists = nil // a Memory keeps the groups
	}

	if d.Rejected == nil {
		d.Table = newTable(groups, newOverrides(d.Settings.Listeners.OriginRequests(), d.Listeners), d.access)
		if d.translator.capabilities.PresentsCertificates {
			d.Table.ClientCertificate = d.client.usable
		}
		d.Table.ClusterDomain, d.Table.OriginRequest = o.ClusterDomain, d.Settings.Spec.OriginRequest
		if c := d.Settings.Spec.Connector; c != nil {
			d.Table.Protection, d.Table.Telemetry = routing.NewProtection(c.Envoy), routing.NewTelemetry(c.Envoy)
		}
		if d.DataPlane == v1alpha1.DataPlaneEnvoy {
			d.Uncounted = d.limiter.selectCounted(d.Table)
		}
		d.addRedirectLoops(groups)
		d.addProtectedCalls()
		d.addIgnoredPolicies(d.entries())
		d.Warnings = accessWarnings(d.Table, d.Settings, d.accessGaps())
		d.ClaimedHostnames = claimedHostnames(d.Routes, d.shares, groups)
	}
	return d
}

// decision is a Result in progress. A [Memory] keeps it until the next one.
type decision struct {
	*Result
	options    Options
	snapshot   *Snapshot
	references references
	// invalid is why the settings are not valid, or nil.
	invalid *Problem
	access  routing.Access
	limiter *limiter
	parents parents
	// backendUsers is nil until a backend changes.
	backendUsers backendUsers
}

func newDecision(s *Snapshot, o Options) *decision {
	grants := newGrants(s.Grants)
	d := &decision{
		Result: &Result{gateway: s.Gateway, now: s.Now, controller: o.ControllerName}, options: o, snapshot: s,
		references: newReferences(s, grants),
	}
	d.client = d.references.resolveClient(s.Gateway)
	in := settings.Input{
		Class: s.Class, ClassConfiguration: s.ClassConfiguration, Gateway: s.Gateway, GatewayConfiguration: s.GatewayConfiguration,
		ControllerNamespace: o.ControllerNamespace,
	}
	d.Settings, d.invalid = settings.Resolve(in)
	d.DNS, _ = settings.ClassDNS(in)
	d.Applications, _ = settings.ClassApplications(in)
	d.Paused = v1alpha1.RequestsPause(d.gateway) && !settings.ForbidsPausing(in)
	d.DataPlane = cmp.Or(s.DataPlane, d.Settings.DataPlane())
	capabilities := o.DataPlanes[d.DataPlane]
	d.permitted = newPermittedHostnames(s)
	d.limiter = newLimiter(s, in, d.DataPlane)
	d.limiter.repeats, d.limiter.knowsScheme = capabilities.RepeatsEntries, capabilities.KnowsScheme
	d.translator = translator{
		capabilities: capabilities,
		expressions:  expressions{refused: d.limiter.class.ExpressionsRefused, unsupported: capabilities.Expression},
		backends:     newBackendResolver(s, grants, o.ControllerName, capabilities, d.Settings.Backends()),
	}
	if withEnvoy, ok := o.DataPlanes[v1alpha1.DataPlaneEnvoy]; ok && d.DataPlane == v1alpha1.DataPlaneIngressRules {
		d.translator.envoy, d.translator.backends.envoy = &withEnvoy, &withEnvoy
	}
	return d
}

// decideListeners decides which listeners claim their hostname and are served.
func (d *decision) decideListeners() {
	d.listeners, d.Sets = mergeListeners(d.snapshot)
	d.permitted.rejectListeners(d.Sets)
	d.limiter.limitListeners(d.Sets)
	rejectConflicts(d.Sets, d.snapshot.Conflicts)
	d.Listeners = orderByPrecedence(d.listeners, d.Sets)

	resolveConflicts(d.listeners, d.Sets, d.limiter)
	for _, l := range d.Listeners {
		d.references.resolve(l)
	}
	if !d.translator.capabilities.KnowsScheme {
		markAfterHTTPS(d.Listeners)
	}
	d.Rejected = d.gatewayProblem(d.snapshot, d.invalid)
	d.parents = newParents(d.snapshot, d.listeners, d.Sets)
}

// translateRoutes translates the route rules and resolves their backends. Without an earlier
// decision, it translates in snapshot order, which is faster than the order of precedence.
func (d *decision) translateRoutes(before *earlier) {
	routes := newRoutes(d.snapshot, d.permitted)
	d.Routes = slices.Clone(routes)
	rankRoutes(d.Routes)
	d.limiter.limitExpressions(d.Routes, d.parents)
	if before == nil {
		resolveRoutes(routes, d.translator, d.parents)
	} else {
		before.resolveRoutes(d, routes)
	}
}

// attachRoutes attaches the routes to the listeners, and returns the groups of the
// routing table.
func (d *decision) attachRoutes() map[string]*group {
	attachRoutes(d.Routes, d.parents)
	groups := d.groups()
	d.decideAccess(groups)
	if d.limiter.repeats {
		return groups
	}
	for hostname, separate := range routing.SeparateHostnames(groups, d.access) {
		groups[hostname].separate = separate
	}
	return groups
}

// groups groups the served listeners.
func (r *Result) groups() map[string]*group {
	groups := groupsOf(r.Listeners)
	if r.translator.capabilities.KnowsScheme {
		linkSchemes(groups, gatewayOwner(r.gateway))
	}
	return groups
}

func (d *decision) accessGaps() []routing.AccessGap {
	if d.translator.capabilities.AccessGaps == nil {
		return nil
	}
	return d.translator.capabilities.AccessGaps(d.Table)
}

// removeRefused rejects the refused routes on every parent where a listener admits them,
// and removes them from the listeners and the groups.
func (d *decision) removeRefused(groups map[string]*group) {
	if !d.shares.contains((*share).isRefused) {
		return
	}
	for _, route := range d.Routes {
		refused := d.shares.of(route).refused
		for i := range route.Parents {
			if refused != nil && len(route.Parents[i].Listeners) > 0 {
				route.Parents[i].Rejected = refused
			}
		}
	}
	for _, l := range d.Listeners {
		for _, route := range l.routes {
			if d.shares.of(route).isRefused() && route.countsAt(l) {
				l.AttachedRoutes--
			}
		}
		l.routes = d.shares.withoutRefused(l.routes)
	}
	for _, g := range groups {
		g.routes = d.shares.withoutRefused(g.routes)
		g.schemes.redirects, g.completeLists = nil, nil // they can have refused routes
	}
}

// countsAt reports whether the route counts as attached to the listener, unless it is refused.
func (r *Route) countsAt(l *Listener) bool {
	return slices.ContainsFunc(r.Parents, func(p Parent) bool { return slices.Contains(p.Listeners, l) && !r.isFullyDropped(p.Dropped) })
}

// confineRoutes marks the confined routes in the routing table.
func (d *decision) confineRoutes() {
	if !d.shares.contains((*share).isConfined) {
		return // most Gateways
	}
	for i := range d.shares {
		s := &d.shares[i]
		s.route.confined, s.route.source.Confined = s.confined, s.isConfined()
		s.route.source.Tenant = d.limiter.tenants.describe(s.route.Namespace)
	}
}
