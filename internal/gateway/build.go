// Package gateway decides. It takes a [Snapshot], everything in the cluster
// that can affect one Gateway, and returns a [Result]: the effective hostname
// table, the ingress rules for the tunnel and the status of every object.
//
// It is pure: no client, no context, no clock, no logger and no I/O belong in
// here. The same Snapshot, its slices in any order, gives the same Result to
// the byte, and the Snapshot is never changed.
package gateway

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Snapshot is everything that can affect one Gateway. Build only reads it.
type Snapshot struct {
	// Now is the time of the decision.
	Now time.Time
	// Gateway is the one to decide about.
	Gateway *gatewayv1.Gateway
	// Class is the Gateway's class; nil counts as one without parameters.
	Class *gatewayv1.GatewayClass
	// ClassConfiguration is the object that [settings.ClassParameters] names; nil
	// when there is no such reference, and when the object does not exist.
	ClassConfiguration *v1alpha1.TunnelConfiguration
	// GatewayConfiguration is likewise that of [settings.GatewayParameters].
	GatewayConfiguration *v1alpha1.TunnelConfiguration
	// ListenerSets are those whose parentRef points to the Gateway, whether the
	// Gateway allows them or not.
	ListenerSets []*gatewayv1.ListenerSet
	// HTTPRoutes are those with a parentRef to the Gateway or to one of the
	// ListenerSets.
	HTTPRoutes []*gatewayv1.HTTPRoute
	// GRPCRoutes are likewise.
	GRPCRoutes []*gatewayv1.GRPCRoute
	// Grants are those of the namespaces that any of the above refers to.
	Grants []*gatewayv1beta1.ReferenceGrant
	// Certificates are what was found of the Secrets that [SecretsToRead]
	// names; one that does not exist is not among them.
	Certificates map[types.NamespacedName]Certificate
	// Namespaces are those of the ListenerSets and the routes, by name.
	Namespaces map[string]*corev1.Namespace
	// Services are those that the routes' backends name.
	Services map[types.NamespacedName]*corev1.Service
	// EndpointSlices are those of headless Services that name a target port.
	EndpointSlices map[types.NamespacedName][]*discoveryv1.EndpointSlice
	// Tunnel is the Gateway's tunnel, or empty when it has none yet.
	Tunnel provider.TunnelID
	// OlderGateways is the number of Gateways in the same namespace that this
	// controller manages and that are older.
	OlderGateways int
	// OrphanedTunnels is the number of Tunnels of Gateways in the same namespace
	// that do not exist, or that this controller does not manage.
	OrphanedTunnels int
}

// Options are the settings of the controller that its decisions depend on.
type Options struct {
	// ControllerName is the name of the controller, in GatewayClasses and in its
	// entries of a route's status.
	ControllerName gatewayv1.GatewayController
	// ControllerNamespace is the namespace of the controller.
	ControllerNamespace string
	// ClusterDomain is the DNS domain of the cluster, without dots at its ends.
	ClusterDomain string
}

// Result is what Build decided.
type Result struct {
	// Listeners is the effective hostname table: the listeners of all owners in
	// order of precedence, and after them those of sets that are not allowed.
	Listeners []*Listener
	// Sets are the ListenerSets in order of precedence, allowed or not.
	Sets []*Set
	// Routes are the routes, oldest first.
	Routes []*Route
	// Rejected says why the Gateway is not accepted; nil when it is.
	Rejected *Problem
	// Settings are those of the class and of the Gateway, merged; nil when they
	// are not valid. Then the Gateway is rejected, and its data plane stays as it
	// is.
	Settings *settings.Settings
	// Rules are the tunnel's ingress rules from the top, each with its origin;
	// none when the Gateway is not accepted.
	Rules []Rule

	gateway    *gatewayv1.Gateway
	listeners  []*Listener // the Gateway's own
	controller gatewayv1.GatewayController
}

// Problem is the reason for a condition that is not in its good state.
type Problem = settings.Problem

// Build decides about one Gateway. It reads as a table of contents: each step
// works on what the steps before it found out.
func Build(s *Snapshot, o Options) *Result {
	r := &Result{gateway: s.Gateway, controller: o.ControllerName}

	// Which listeners are there, and in which order do they take precedence?
	r.listeners, r.Sets = mergeListeners(s)
	r.Listeners = orderByPrecedence(r.listeners, r.Sets)

	// Which of them hold their hostname, and which lose it to whom?
	resolveConflicts(r.listeners, r.Sets)

	// What do they reference, and does it exist?
	permitted := newGrants(s.Grants)
	refs := references{now: s.Now, grants: permitted, certificates: s.Certificates}
	for _, l := range r.Listeners {
		refs.resolve(l)
	}

	// What is set for the tunnel, its connectors and the rules?
	rules, invalid := r.applySettings(s, o)
	r.Rejected = r.gatewayProblem(s, invalid)

	// Which routes attach to which of them, and to which backends do they lead?
	r.Routes = normaliseRoutes(s)
	backends := backendResolver{grants: permitted, services: s.Services, slices: s.EndpointSlices, clusterDomain: o.ClusterDomain}
	resolveRoutes(r.Routes, backends)
	attachRoutes(r.Routes, newParents(s, r.listeners, r.Sets))

	// What does the tunnel have to do?
	if r.Rejected == nil {
		r.Rules = ingressRules(r.Listeners, rules)
	}
	return r
}

// applySettings returns the settings of the rules, or why the settings are not
// valid. It refuses the listeners for which they contradict themselves.
func (r *Result) applySettings(s *Snapshot, o Options) (ruleSettings, *Problem) {
	merged, problem := settings.Resolve(settings.Input{
		Class: s.Class, ClassConfiguration: s.ClassConfiguration, Gateway: s.Gateway, GatewayConfiguration: s.GatewayConfiguration,
		ControllerNamespace: o.ControllerNamespace,
	})
	if problem != nil {
		return ruleSettings{}, problem
	}
	rules := newRuleSettings(merged, r.Listeners)
	if problem := rules.rejectContradictions(r.Listeners); problem != nil {
		return ruleSettings{}, problem
	}
	r.Settings = merged
	return rules, nil
}

// Configuration returns the document for the tunnel, or nil when the Gateway
// is not accepted: then nothing is pushed, and the last document stays in
// force.
func (r *Result) Configuration() *provider.Configuration {
	if r.Rejected != nil {
		return nil
	}
	c := &provider.Configuration{Ingress: make([]provider.IngressRule, len(r.Rules))}
	if top := r.Settings.Spec.OriginRequest; top != nil {
		c.OriginRequest = renderOriginRequest(*top)
	}
	for i := range r.Rules {
		c.Ingress[i] = r.Rules[i].IngressRule()
	}
	return c
}
