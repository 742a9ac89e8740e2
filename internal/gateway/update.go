package gateway

import (
	"cmp"
	"reflect"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// retranslated is a route with its next translation.
type retranslated struct{ route, next *Route }

// update turns the decision into the one for the next Snapshot, if only statuses and what
// rules do with requests have changed: backends, weights, filters without redirects and
// timeouts. Nothing else about the Gateway depends on these. Otherwise, it returns false,
// and the decision must no longer be used.
func (d *decision) update(s *Snapshot, o Options) bool {
	if d.Rejected != nil || !d.options.equal(o) {
		return false
	}
	differs, ok := differ(d.snapshot, s)
	if !ok || !d.updateSets(differs.sets) {
		return false
	}
	d.kept.forgetTimes(d.now, s.Now)
	d.snapshot, d.gateway, d.now = s, s.Gateway, s.Now
	d.translator.backends = newBackendResolver(s, d.references.grants, o.ControllerName, d.translator.capabilities, d.translator.backends.addresses)
	if d.translator.envoy != nil {
		d.translator.backends.envoy = d.translator.envoy
	}
	changed, ok := d.retranslate(differs)
	if !ok || !d.updateStates() {
		return false
	}
	d.replaceActions(changed)
	d.Warnings = accessWarnings(d.Table, d.Settings, d.accessGaps())
	return true
}

// equal compares the options apart from DataPlanes, which are constant in a process.
func (o Options) equal(other Options) bool {
	return o.ControllerName == other.ControllerName && o.ControllerNamespace == other.ControllerNamespace && o.ClusterDomain == other.ClusterDomain
}

// updateSets replaces the objects of ListenerSets whose status has changed. It returns false
// if anything else has.
func (d *decision) updateSets(objects []*gatewayv1.ListenerSet) bool {
	if len(objects) == 0 {
		return true // most changes
	}
	byOwner := make(map[Owner]*gatewayv1.ListenerSet, len(objects))
	for _, object := range objects {
		byOwner[listenerSetOwner(object)] = object
	}
	for _, set := range d.Sets {
		object := byOwner[set.Owner]
		if object == nil {
			continue
		}
		if !isSameSet(set.object, object) {
			return false
		}
		set.object = object
		delete(d.kept.sets, set)
	}
	return true
}

// retranslate translates the routes again that have changed, or whose backends have. It
// returns false if one of them differs in more than its actions.
func (d *decision) retranslate(differs difference) ([]retranslated, bool) {
	var all []retranslated
	changed := map[*Route]bool{}
	for _, next := range newRoutes(&Snapshot{HTTPRoutes: differs.httpRoutes, GRPCRoutes: differs.grpcRoutes}, d.permitted) {
		i, found := slices.BinarySearchFunc(d.Routes, next, compareRoutes)
		if !found || !d.Routes[i].hasSameMatches(next) {
			return nil, false
		}
		changed[d.Routes[i]] = true
		all = append(all, retranslated{d.Routes[i], next})
	}
	for name := range differs.backends {
		for _, route := range d.users()[name] {
			if !changed[route] {
				changed[route] = true
				all = append(all, retranslated{route, route.untranslated()})
			}
		}
	}
	for _, r := range all {
		r.next.admitted, r.next.skipsExpressions, r.next.tooLong = r.route.admitted, r.route.skipsExpressions, r.route.tooLong
		d.translator.resolve(r.next, nil, nil)
		if !r.changesOnlyActions(d.Table.Telemetry.CountsRoutes()) {
			return nil, false
		}
	}
	return all, true
}

// untranslated returns the route as [newRoutes] does.
func (r *Route) untranslated() *Route {
	return &Route{
		Kind: r.Kind, NamespacedName: r.NamespacedName, Hostnames: r.Hostnames, Rules: r.Rules, grpc: r.grpc, generation: r.generation, age: r.age,
		parentRefs: r.parentRefs, messageSize: r.messageSize, permitted: r.permitted, unsupported: r.unsupported,
	}
}

// hasSameMatches reports whether both versions of a route have the same parents, hostnames
// and matches.
func (r *Route) hasSameMatches(next *Route) bool {
	if len(r.Rules) != len(next.Rules) || !slices.Equal(r.Hostnames, next.Hostnames) || !reflect.DeepEqual(r.parentRefs, next.parentRefs) {
		return false
	}
	for i := range r.Rules {
		if !reflect.DeepEqual(r.Rules[i].Matches, next.Rules[i].Matches) ||
			r.grpc != nil && !reflect.DeepEqual(r.grpc.Spec.Rules[i].Matches, next.grpc.Spec.Rules[i].Matches) {
			return false
		}
	}
	return true
}

// changesOnlyActions reports whether the next translation has the same effect on listeners,
// limits, the order of matches and other routes. Routes with redirects, with rules that the
// data plane does not support and without a parent are left to [Build].
func (r retranslated) changesOnlyActions(countsRoutes bool) bool {
	if r.route.isSpecial() || r.next.isSpecial() || r.route.backends != r.next.backends {
		return false
	}
	return slices.EqualFunc(r.route.matches, r.next.matches, hasSameEffect) &&
		slices.EqualFunc(r.route.actions, r.next.actions, func(a, b routing.Action) bool {
			return a.Redirect == nil && b.Redirect == nil && replacesPrefix(&a) == replacesPrefix(&b) &&
				(!countsRoutes || slices.Equal(a.BackendNames(), b.BackendNames()))
		})
}

// isSpecial reports whether the route has rules that the data plane does not support, or no parent.
func (r *Route) isSpecial() bool {
	return len(r.Dropped) > 0 || r.orphan != nil || slices.ContainsFunc(r.Parents, func(p Parent) bool { return len(p.Dropped) > 0 })
}

// hasSameEffect reports whether both matches have the same effect on limits and other routes.
func hasSameEffect(a, b ruleMatch) bool {
	return a.rule == b.rule && a.match == b.match && a.instructions == b.instructions && a.cost == b.cost && a.toHTTPS == b.toHTTPS
}

// updateStates decides again what the hostnames require: that changes with time and with
// the applications. It returns false if the requirements differ.
func (d *decision) updateStates() bool {
	d.accessible.inEffect, d.accessible.inEffectKnown = d.snapshot.Access.InEffect, d.snapshot.Access.InEffectKnown
	before, demanded := d.access, d.Demanded
	if len(demanded.Demands) > 0 {
		demanded = d.accessible.demanded()
	}
	d.decideStates(demanded)
	return reflect.DeepEqual(before, d.access)
}

// replaceActions replaces the actions of the routes, and the table if they differ.
func (d *decision) replaceActions(all []retranslated) {
	if len(all) == 0 {
		return
	}
	routes := make(map[*routing.Route]*Route, len(all))
	for _, r := range all {
		moves := d.backendUsers != nil && r.namesOtherBackends()
		if moves {
			d.backendUsers.remove(r.route)
		}
		r.replace()
		if moves {
			d.backendUsers.add(r.route)
		}
		d.kept.outdated = append(d.kept.outdated, r.route.source.Rank)
		routes[&r.route.source] = r.route
	}
	var entries []*routing.Entry
	replaced := map[*routing.Entry]*routing.Entry{}
	for e := range d.Table.Entries() {
		route := routes[e.Source.Route]
		if route == nil {
			continue // most entries
		}
		if action := &route.actions[e.Source.Rule]; e.Action != action {
			next := *e
			next.Action, replaced[e] = action, &next
		}
		entries = append(entries, cmp.Or(replaced[e], e))
	}
	if len(replaced) > 0 {
		d.Table = d.Table.Replace(replaced)
	}
	d.addIgnoredPolicies(slices.Values(entries))
}

// namesOtherBackends reports whether the next version names other backends, or in another order.
func (r retranslated) namesOtherBackends() bool {
	return !slices.Equal(slices.Collect(r.route.namedBackends()), slices.Collect(r.next.namedBackends()))
}

// replace turns the route into its next version. Equal actions stay the same, so that its
// entries do, too.
func (r retranslated) replace() {
	route, next := r.route, r.next
	route.Hostnames, route.Rules, route.grpc, route.generation, route.parentRefs = next.Hostnames, next.Rules, next.grpc, next.generation, next.parentRefs
	route.Unresolved, route.ignoredPolicies = next.Unresolved, ""
	if !reflect.DeepEqual(route.actions, next.actions) {
		route.actions = next.actions
	}
}
