// Package plan shows what the controller would do with manifests or with a cluster's
// objects. It uses the same code as the controller to load objects and to make
// decisions, and assumes that pushes succeed. It changes nothing.
package plan

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/credentials"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
	"github.com/tunnel-gateway/tunnel-gateway/internal/tunnel"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// Plan contains the configurations and the statuses that the controller would write.
// Its JSON encoding is stable.
type Plan struct {
	Gateways []Gateway `json:"gateways"`
	Statuses []Status  `json:"statuses"`
	// Mistakes are the probable mistakes in objects that no status reports.
	Mistakes []Mistake `json:"mistakes"`
	// WhatIf is nil for a plan with the source's settings.
	WhatIf *WhatIf `json:"whatIf,omitempty"`
	// Zones are what [Plan.CompareZones] found; nil if no zone was compared.
	Zones []Zone `json:"zones,omitempty"`
	// Accounts are what [Plan.ReadApplications] found; nil if no applications were read.
	Accounts []Account `json:"accounts,omitempty"`
	// Unknown says what the plan does not know, because the user may not read it. Each text
	// continues "It is not known".
	Unknown []string `json:"unknown,omitempty"`
	// Reported are the statuses in the cluster of objects about whose Gateway no decision is
	// possible.
	Reported []ReportedStatus `json:"reported,omitempty"`

	undecided *undecided
	// unserved explains, for each existing Gateway that the controller does not serve,
	// why.
	unserved map[types.NamespacedName]string
	// classes are the names of the controller's GatewayClasses, sorted. missesClass
	// reports whether a Gateway's GatewayClass does not exist.
	classes     []string
	missesClass bool
	// terminating are this controller's Gateways that are being deleted.
	terminating []types.NamespacedName
	// records are all Gateways as far as DNS is concerned, also Gateways that are gone or not
	// selected; nil if no GatewayClass uses DNS. selected reports whether [Plan.Select]
	// has removed Gateways.
	records  []recordGateway
	selected bool
	// applications are all Gateways as far as applications of Cloudflare Access are
	// concerned; nil if no GatewayClass manages any.
	applications []accessGateway
	// detached are the routes with a missing parent.
	detached   []DetachedRoute
	tunnels    *tunnels
	origin     *origin
	dataPlanes routing.DataPlanes
	envoy      *envoyOutput // for the only Gateway, after RenderEnvoy
	// endpoints are the EndpointSlices that ReadEndpoints has read, by Service or
	// ServiceImport.
	endpoints map[envoy.EndpointSource][]*discoveryv1.EndpointSlice
}

// Options are the controller settings that affect a plan.
type Options struct {
	gateway.Options
	// ClusterID is the prefix for tunnel names. If it is empty, the plan uses the ID in
	// the controller's Tunnels, otherwise the controller's default.
	ClusterID string
	// DataPlane is the data plane of every Gateway in a what-if. If it is empty, the settings
	// select the data planes.
	DataPlane v1alpha1.DataPlane
	// Account is the default account with its API token. If it is empty, the plan
	// assumes that each Tunnel's account is the desired one.
	Account credentials.Default
	// Applications are what [Plan.ReadApplications] has read of the same source; nil if
	// nothing was read.
	Applications *ReadApplications
}

// Gateway is the effective hostname table of one Gateway, with the tunnel
// configuration.
type Gateway struct {
	Namespace            string     `json:"namespace"`
	Name                 string     `json:"name"`
	AttachedListenerSets int32      `json:"attachedListenerSets"`
	Listeners            []Listener `json:"listeners"`
	// DataPlane is what routes the requests: IngressRules or Envoy. It is the data
	// plane in effect, or the data plane in the settings for a new Tunnel.
	DataPlane v1alpha1.DataPlane `json:"dataPlane"`
	// DataPlaneChange is nil if the data plane does not change.
	DataPlaneChange *DataPlaneChange `json:"dataPlaneChange,omitempty"`
	// Entries are the routing table entries that requests can reach, by hostname, in the
	// order in which they are tried.
	Entries []TableEntry `json:"entries"`
	// Shadowed are the entries that no request for their hostname reaches.
	Shadowed []ShadowedEntry `json:"shadowed"`
	// Access is what requests for the hostnames of the table require, the narrowest first,
	// without the hostnames that are simply open.
	Access []HostnameAccess `json:"access"`
	// Config is the configuration that the controller would push; nil if the Gateway
	// is not accepted.
	Config *provider.Configuration `json:"config"`
	// Warnings are an accepted Gateway's problems that no condition reports.
	Warnings []Warning `json:"warnings"`
	// Limits is how much is used of the limits that the GatewayClass sets; empty if the
	// settings are not valid.
	Limits []Limit `json:"limits"`
	// Tenants is how much each tenant uses; empty if the settings are not valid.
	Tenants []Tenant `json:"tenants"`
	// Diff is what [Plan.Compare] found; nil if the Gateway was not compared.
	Diff *Diff `json:"diff,omitempty"`
	// Records are what [Plan.CompareZones] found for the hostnames; nil if no zone was
	// compared.
	Records []Record `json:"records,omitempty"`

	created           time.Time
	decision          *decision.Decision
	result            *gateway.Result // for the data plane in effect, or for that of a what-if
	before            *gateway.Result // without the what-if; nil if there is none
	class             *gatewayv1.GatewayClass
	facts             tunnel.Facts
	outcome           tunnel.Outcome
	reportedOutcome   gateway.Outcome
	services          *services
	hostnames         map[gateway.Owner][]string // by the listeners' owner, after hostnamesOf
	unservedHostnames []unservedHostname
	sharedHostnames   string // message about hostnames that other Gateways serve too
	// accessPolicyProblems are the problems of AccessPolicies that no hostname has.
	// applicationsRead reports whether the account's applications were read.
	accessPolicyProblems []Problem
	applicationsRead     bool
	reported             map[gateway.Owner]bool // objects whose statuses depend on the Gateway
}

// Warning is a problem with an accepted Gateway that no condition reports.
type Warning struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// newWarnings returns an empty list for nil.
func newWarnings(warnings []gateway.Warning) []Warning {
	all := make([]Warning, len(warnings))
	for i, w := range warnings {
		all[i] = Warning{w.Reason.String(), w.Message}
	}
	return all
}

// Owner identifies an object: a listener's Gateway or ListenerSet, or a rule's route.
type Owner struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String returns the kind, the namespace if there is one, and the name.
func (o Owner) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name)
}

func newOwner(o gateway.Owner) Owner { return Owner{o.Kind, o.Namespace, o.Name} }

// Status is an object's complete status.
type Status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Status     any    `json:"status"`

	conditions [][]metav1.Condition // the controller's conditions
}

// Build builds the plan for all the controller's Gateways in the source. now is the
// current time.
func Build(ctx context.Context, source *state.Source, o Options, now time.Time) (*Plan, error) {
	o.DataPlanes = dataPlanes(source)
	undecided := newUndecided(source, o.ControllerName)
	statuses, err := newStatuses(ctx, source, o.Options, undecided)
	if err != nil {
		return nil, err
	}
	tunnels, err := newTunnels(ctx, source, o, now)
	if err != nil {
		return nil, err
	}
	plan := &Plan{Gateways: []Gateway{}, unserved: map[types.NamespacedName]string{}, tunnels: tunnels, WhatIf: newWhatIf(o), dataPlanes: o.DataPlanes, undecided: undecided}
	plan.origin = &origin{source: source.Separate(), options: o, now: now}
	if err := plan.findMistakes(ctx, source, o.ControllerName); err != nil {
		return nil, err
	}
	hostnames, err := plan.decide(ctx, source, o, statuses, now)
	if err != nil {
		return nil, err
	}
	plan.report(hostnames, statuses)
	plan.findUnservedHostnames()
	plan.sortMistakes()
	plan.Statuses = statuses.sorted()
	plan.records, plan.applications = plan.newRecordGateways(), plan.newAccessGateways()
	if o.Applications != nil {
		plan.Accounts = o.Applications.accounts
	}
	plan.Reported, plan.Unknown = undecided.reportedStatuses(), undecided.unknown(len(plan.Gateways) > 0, everywhere)
	plan.Unknown = append(plan.Unknown, plan.unreadPolicies(func(string, string) bool { return true })...)
	return plan, nil
}

// decide adds the Gateways that the controller serves, without their statuses. It returns
// their hostnames.
func (p *Plan) decide(ctx context.Context, source *state.Source, o Options, s *statuses, now time.Time) (*gateway.Hostnames, error) {
	loader := state.Loader{
		Reader: source, ControllerName: o.ControllerName, ControllerNamespace: o.ControllerNamespace, Certificates: source.Certificates,
		CABundles: state.DirectCABundles{Reader: source},
	}
	hostnames, services, conflicts := gateway.NewHostnames(), newServices(source.Objects), source.ReportedConflicts()
	for _, key := range gatewayKeys(source.Objects, o.ControllerName) {
		if p.undecided.gap(key) != nil {
			continue
		}
		loaded, err := loader.Load(ctx, key)
		if err != nil {
			return nil, err
		}
		if reason := unservedReason(loaded); reason != "" {
			p.addUnserved(loaded, key, reason)
			if !loaded.ClassMissing && len(source.Gaps) == 0 {
				s.addAttached(decision.Withdraw(key, loaded.Snapshot, loaded.Managed))
			}
			continue
		}
		loaded.Snapshot.Now, loaded.Snapshot.Conflicts = now, conflicts
		known, isRead := o.Applications.of(key.NamespacedName)
		loaded.Snapshot.Access = known
		g := newGateway(loaded, p.tunnels, o)
		g.applicationsRead = isRead
		g.services = services
		hostnames.Set(key.NamespacedName, g.result.Hostnames())
		p.Gateways = append(p.Gateways, g)
	}
	return hostnames, nil
}

// report adds the statuses of the Gateways with the hostnames.
func (p *Plan) report(hostnames *gateway.Hostnames, s *statuses) {
	for i := range p.Gateways {
		p.Gateways[i].report(hostnames, s)
	}
	for i := range p.Gateways { // the route statuses now contain the parents from all Gateways
		g := &p.Gateways[i]
		if c := g.DataPlaneChange; c != nil {
			c.setRoutes(g, s)
		}
	}
}

// gatewayKeys returns the keys of all Gateways, and of missing parents that the
// controller's status entries on routes refer to.
func gatewayKeys(objects []client.Object, controller gatewayv1.GatewayController) []state.Key {
	exists, keys := map[state.Key]bool{}, map[state.Key]bool{}
	for _, object := range objects {
		switch o := object.(type) {
		case *gatewayv1.Gateway:
			keys[state.GatewayKey(o.Namespace, o.Name)] = true
		case *gatewayv1.ListenerSet:
			exists[state.Key{Kind: gateway.KindListenerSet, NamespacedName: client.ObjectKeyFromObject(o)}] = true
		}
	}
	for _, object := range objects {
		for _, parent := range state.RouteStatusParents(object, controller) {
			if !exists[parent] {
				keys[parent] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(keys), func(a, b state.Key) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// newGateway returns the plan's Gateway without its statuses.
func newGateway(loaded *state.Loaded, t *tunnels, o Options) Gateway {
	object := t.tunnel(client.ObjectKeyFromObject(loaded.Gateway))
	options := t.optionsFor(object, o.Options)
	snapshot, before := loaded.Snapshot, (*gateway.Result)(nil)
	if o.DataPlane != "" {
		before = decision.Decide(snapshot, loaded.Tunnel, options, nil).Plane(loaded.Tunnel).Result
		snapshot = selectDataPlane(snapshot, o.DataPlane)
	}
	d := decision.Decide(snapshot, loaded.Tunnel, options, nil)
	plane := shownPlane(d, loaded.Tunnel, o.DataPlane)
	result := plane.Result
	return Gateway{
		Namespace: loaded.Gateway.Namespace, Name: loaded.Gateway.Name,
		AttachedListenerSets: result.AttachedListenerSets(),
		Listeners:            []Listener{},
		DataPlane:            result.DataPlane,
		Entries:              newTableEntries(result.Table),
		Shadowed:             newShadowedEntries(result.Table),
		Access:               newAccess(result),
		Config:               plane.Configuration,
		Warnings:             newWarnings(result.Warnings),
		Limits:               newLimits(result.Usage),
		Tenants:              newTenants(result.Usage),
		created:              loaded.Gateway.CreationTimestamp.Time,
		decision:             d,
		result:               result,
		before:               before,
		class:                loaded.Snapshot.Class,
		facts:                t.facts(loaded.Gateway, object, d, options.Tunnel),
	}
}

// other returns the decision for the data plane that is not in effect, or nil.
func (g *Gateway) other() *decision.Plane { return g.decision.Other(g.facts.Object) }

// report adds the Gateway's statuses. hostnames come from all Gateways.
func (g *Gateway) report(hostnames *gateway.Hostnames, s *statuses) {
	key := state.GatewayKey(g.Namespace, g.Name)
	g.outcome = expectedOutcome(g.facts)
	g.reportedOutcome = g.decision.Outcome(g.facts.Object, g.outcome, decision.Evidence{Shared: hostnames.Shared(key.NamespacedName)})
	report := g.result.Report(g.reportedOutcome)
	g.reported = s.addGateway(key, report)
	g.accessPolicyProblems = newAccessPolicyProblems(report)
	if c := conditions.TypeHostnameShared.Find(report.Gateway.Conditions); c != nil {
		g.sharedHostnames = c.Message
	}
	byListener := listenerConditions(key, report)
	for _, l := range g.resultListeners() {
		g.Listeners = append(g.Listeners, newListener(l, byListener[l.Owner][l.Spec.Name]))
	}
	g.DataPlaneChange = newDataPlaneChange(g)
}
