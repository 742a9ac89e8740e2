package gateway

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/access"
	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/settings"
)

// accessTable has what decides about the access to each hostname of the routing table.
type accessTable struct {
	*Result
	levels accessLevels
	groups map[string]*group
	// class is the name of the GatewayClass. classConfiguration and gatewayConfiguration are
	// the objects with the entries, or nil.
	class                                    string
	classConfiguration, gatewayConfiguration *v1alpha1.TunnelConfiguration
	// decided are the decisions by hostname of the table: the hostnames of listeners, the
	// hostnames of attached routes, and the hostnames of entries that a listener covers.
	decided map[string]accessDecision
	// isRouted reports whether a route without a hostname is attached to a listener without
	// a hostname.
	isRouted bool
	// inEffect is what the rules in effect require. It is valid only if inEffectKnown.
	inEffect      routing.Access
	inEffectKnown bool
}

// decideAccess decides what the hostnames of the table require. While the settings are not
// valid, it is not known what they demand.
func (d *decision) decideAccess(groups map[string]*group) {
	d.accessPolicies = newAccessPolicies(d.snapshot.AccessPolicies, gatewayOwner(d.gateway), d.listeners, d.Sets, groups)
	if d.Settings == nil {
		d.Demanded = access.Demanded{Unknown: true, Settings: d.Applications}
		return
	}
	d.accessible = d.newAccessTable(groups)
	d.decideStates(d.accessible.demanded())
}

// decideStates decides what the hostnames require, given what they demand.
func (d *decision) decideStates(demanded access.Demanded) {
	t := d.accessible
	d.Demanded = demanded
	d.Demanded.Unknown = d.snapshot.AccessPoliciesUnknown
	var exceeding []string
	if d.DataPlane == v1alpha1.DataPlaneEnvoy {
		exceeding = t.limitRules(&d.Demanded)
	}
	known := d.snapshot.Access
	known.Frozen = known.Frozen || d.Paused
	states := access.States(d.Demanded, known)
	for _, hostname := range exceeding {
		problem := accessRulesProblem()
		states[hostname] = access.State{Status: access.Closed, Reason: problem.Reason, Message: problem.Message}
	}
	if d.DataPlane == v1alpha1.DataPlaneEnvoy {
		t.closeEnding(states)
	}
	if closed, ok := t.emptyHostnameState(); ok {
		states[""] = closed
	}
	d.AccessStates, d.access = states, t.newAccess(states)
	d.limiter.access = d.access
}

// newAccessTable decides about each hostname of the table, also if nothing requires
// access: the process remembers which hostnames it has served open.
func (d *decision) newAccessTable(groups map[string]*group) *accessTable {
	s := d.snapshot
	t := &accessTable{
		Result: d.Result, groups: groups, decided: make(map[string]accessDecision, len(groups)),
		classConfiguration: s.ClassConfiguration, gatewayConfiguration: s.GatewayConfiguration,
		inEffect: s.Access.InEffect, inEffectKnown: s.Access.InEffectKnown,
		levels: newAccessLevels(d.Settings, d.accessPolicies),
	}
	if s.Class != nil {
		t.class = s.Class.Name
	}
	for hostname, g := range groups {
		t.add(hostname, g)
	}
	for _, route := range d.Routes {
		for i := range route.Parents {
			for _, l := range route.Parents[i].Listeners {
				t.addRouted(route, l)
			}
		}
	}
	for _, level := range []map[string]*v1alpha1.Access{t.levels.class, t.levels.gateway} {
		for hostname := range level {
			t.add(hostname, t.claimant(hostname))
		}
	}
	return t
}

// addRouted adds the route's hostnames on a listener that admits the route, as far as
// their requests belong to the listener. A listener that is not served keeps its hostnames,
// for example if a Secret is missing, and so does a route above a limit.
func (t *accessTable) addRouted(route *Route, l *Listener) {
	if !l.claims {
		return
	}
	for hostname := range route.hostnamesOnListener(l.Owner, l.Hostname()) {
		if hostname.served == l.Hostname() {
			t.isRouted = t.isRouted || hostname.served == ""
			continue // most routes
		}
		if g := t.claimant(hostname.served); g.hostname == l.Hostname() {
			t.add(hostname.served, g)
		}
	}
}

// add decides about a hostname that the listeners of the group claim, unless it is nil.
func (t *accessTable) add(hostname string, g *group) {
	if _, known := t.decided[hostname]; !known && g != nil {
		t.decided[hostname] = t.levels.decide(hostname, g)
	}
}

// claimant returns the group whose listeners claim the hostname, or nil.
func (t *accessTable) claimant(hostname string) *group {
	owner, _ := routing.MostSpecific(t.groups, hostname)
	return t.groups[owner]
}

// demanded returns what the hostnames of the table demand.
func (t *accessTable) demanded() access.Demanded {
	d := access.Demanded{Settings: t.Applications, Demands: map[string]access.Demand{}}
	for _, hostname := range sortedNames(t.decided) {
		switch decided := t.decided[hostname]; {
		case hostname == "": // it can have no application
		case decided.isManaged():
			d.Demands[hostname] = t.newDemand(t.application(hostname, decided), decided)
		case decided.isByHand():
			d.ByHand = append(d.ByHand, hostname)
		default:
			d.Hostnames = append(d.Hostnames, hostname)
		}
	}
	return d
}

// application returns the hostname of the application for a hostname of the table. The
// application of a wildcard covers one level at Cloudflare, so the hostname of a route
// uses it if it is one level below, and the same entry or AccessPolicy demands both. Every
// other hostname has an application of its own: a listener or an entry with this hostname,
// and a hostname that is deeper.
func (t *accessTable) application(hostname string, decided accessDecision) string {
	if !routing.IsExact(hostname) || t.groups[hostname] != nil {
		return hostname
	}
	_, parent, _ := strings.Cut(hostname, ".")
	wildcard := "*." + parent
	if t.decided[wildcard] != decided || !t.isPermitted(wildcard, decided) {
		return hostname
	}
	return wildcard
}

// emptyHostnameState returns the state of the listeners without a hostname if they must be
// protected: no application can cover every hostname. It has a reason only if routes are
// closed because of it. It returns false for other Gateways.
func (t *accessTable) emptyHostnameState() (access.State, bool) {
	if !t.decided[""].isManaged() {
		return access.State{}, false
	}
	state := access.State{Status: access.Closed}
	if t.isRouted {
		state.Reason, state.Message = conditions.ReasonHostnameNotPermitted, "routes have no hostname, and no application can protect every hostname. Set spec.hostnames of the routes, or the hostname of the listener."
	}
	return state, true
}

// newDemand returns the demand for an application.
func (t *accessTable) newDemand(hostname string, decided accessDecision) access.Demand {
	namespace := t.claimant(hostname).owner.Namespace
	d := access.Demand{
		Hostname: hostname, Level: decided.level, Invalid: decided.invalid,
		Permitted:    t.isPermitted(hostname, decided),
		NamedByClass: t.isNamedByClass(hostname),
	}
	if p := decided.policy; p != nil {
		d.Object, d.Created = KindAccessPolicy+" "+p.name.String(), createdOr(p.object.CreationTimestamp, t.now)
		d.Owner, d.Namespace = strings.Join([]string{KindAccessPolicy, p.name.Namespace, namespace}, "/"), p.name.Namespace
		d.Policies, d.SessionDuration, d.CORS = p.object.Spec.Policies, settings.SessionDuration(p.object.Spec.SessionDuration), p.object.Spec.CORS
		return d
	}
	d.Policies, d.SessionDuration, d.CORS = decided.block.Policies, settings.SessionDuration(decided.block.SessionDuration), decided.block.CORS
	if decided.level == access.LevelClass {
		d.Owner = strings.Join([]string{"GatewayClass", t.class, namespace}, "/")
	} else {
		d.Owner, d.Namespace = strings.Join([]string{KindGateway, t.gateway.Namespace, t.gateway.Name, namespace}, "/"), t.gateway.Namespace
	}
	d.Object, d.Created = t.entryObject(decided.level)
	return d
}

// entryObject describes the object with the entries of a level, and when it was created.
func (t *accessTable) entryObject(level access.Level) (string, time.Time) {
	configuration := t.classConfiguration
	if level == access.LevelGateway {
		configuration = t.gatewayConfiguration
	}
	name := types.NamespacedName{Namespace: configuration.Namespace, Name: configuration.Name}
	return settings.KindTunnelConfiguration + " " + name.String(), createdOr(configuration.CreationTimestamp, t.now)
}

// isPermitted reports whether an application may be made for the hostname. The GatewayClass
// may protect what its entry names, except by an entry for every hostname. Every other
// demand needs the permission of the namespace whose listener claims the hostname, also on
// the Gateway's own listeners: an application can put a login in front of a site that is
// served elsewhere.
func (t *accessTable) isPermitted(hostname string, decided accessDecision) bool {
	if decided.level == access.LevelClass && decided.entry != "" {
		return true
	}
	return t.permitsNamespace(hostname)
}

// permitsNamespace reports whether the annotation of the claiming listener's namespace
// permits the hostname. Without spec.hostnames.from: NamespaceAnnotation, no annotation
// permits any hostname.
func (t *accessTable) permitsNamespace(hostname string) bool {
	return t.permitted != nil && t.permitted.byNamespace[t.claimant(hostname).owner.Namespace].Permits(hostname)
}

// isNamedByClass reports whether an entry of the GatewayClass about access names exactly this
// hostname.
func (t *accessTable) isNamedByClass(hostname string) bool { return t.levels.class[hostname] != nil }

// hostnames returns all hostnames of the table except the empty one, sorted by name.
func (t *accessTable) hostnames() []access.Hostname {
	all := make([]access.Hostname, 0, len(t.decided))
	created := t.createdByOwner()
	for _, hostname := range sortedNames(t.decided) {
		if hostname == "" {
			continue
		}
		decided, owner := t.decided[hostname], t.claimant(hostname).owner
		h := access.Hostname{
			Name: hostname, Namespace: owner.Namespace, Created: created[owner], Permitted: t.permitsNamespace(hostname), ByHand: decided.isByHand(),
		}
		if decided == (accessDecision{}) {
			h.Exempt, h.NamedByClass = t.levels.exempts(hostname), t.isNamedByClass(hostname)
		}
		all = append(all, h)
	}
	return all
}

// AccessDemands returns the applications that the hostnames of the table need, sorted by
// hostname.
func (r *Result) AccessDemands() []access.Demand {
	byHostname := map[string]access.Demand{}
	for _, demand := range r.Demanded.Demands {
		byHostname[demand.Hostname] = demand
	}
	demands := make([]access.Demand, 0, len(byHostname))
	for _, hostname := range slices.Sorted(maps.Keys(byHostname)) {
		demands = append(demands, byHostname[hostname])
	}
	return demands
}

// AccessHostnames returns all hostnames of the table except the empty one, sorted by name.
func (r *Result) AccessHostnames() []access.Hostname {
	if r.accessible == nil {
		return nil
	}
	return keep(r.kept, func(k *kept) *[]access.Hostname { return &k.accessHostnames }, r.accessible.hostnames)
}
