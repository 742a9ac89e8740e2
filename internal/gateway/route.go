package gateway

import (
	"cmp"
	"iter"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/hostnames"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// Route is an HTTPRoute, or a GRPCRoute in the form of an HTTPRoute. It keeps all spec
// fields, including fields that the data plane cannot express.
type Route struct {
	// Kind is KindHTTPRoute or KindGRPCRoute.
	Kind string
	types.NamespacedName
	// Hostnames are from the spec, including unsupported hostnames. Without hostnames,
	// the route has each listener's hostname.
	Hostnames []gatewayv1.Hostname
	Rules     []gatewayv1.HTTPRouteRule
	// Parents has an entry for each parentRef to the Gateway or to one of its
	// ListenerSets.
	Parents []Parent
	// Unresolved has the first unresolved backendRef's reason, and the first few
	// messages. It is nil when all are resolved, and for a route that no listener admits.
	Unresolved *Problem
	// Dropped lists the rules that the data plane cannot express in full.
	Dropped []DroppedRule

	// ignoredPolicies describes the traffic policies of Services that have no effect for
	// the route, or is empty.
	ignoredPolicies string

	grpc       *gatewayv1.GRPCRoute // the original object; nil for an HTTPRoute
	generation int64
	age        age
	parentRefs []gatewayv1.ParentReference
	// messageSize is the maximum size for a list in a message, which each parent repeats.
	messageSize int
	orphan      *Orphan // not nil if this controller manages none of the parents of the route
	permitted   *permittedHostnames
	// unsupported are the hostnames that the route is not served under, although the CRD
	// accepts them.
	unsupported []string
	admitted    bool             // whether a listener admits the route, or only another route's kind prevents it
	source      routing.Route    // identifies the route in the routing table
	actions     []routing.Action // one for each rule
	matches     []ruleMatch      // that the data plane can express, in order

	backends int      // the backend count if it can exceed the entry count, or 0
	confined string   // why its rules are not repeated for hostnames of other tenants, or empty
	tooLong  *Problem // why the route's regular expressions are too long, or nil
	// protected are the hostnames that require Access, on which the calls of a GRPCRoute get
	// 403.
	protected []string
	// skipsExpressions reports whether the route is never served, so that its regular
	// expressions are not parsed.
	skipsExpressions bool
	reported         *RouteStatus // in the last report about the earlier decision, or nil
}

// newRoutes returns all routes in the snapshot, in its order.
func newRoutes(s *Snapshot, permitted *permittedHostnames) []*Route {
	block := make([]Route, len(s.HTTPRoutes)+len(s.GRPCRoutes))
	for i, object := range s.HTTPRoutes {
		block[i] = newHTTPRoute(object)
	}
	for i, object := range s.GRPCRoutes {
		block[len(s.HTTPRoutes)+i] = newGRPCRoute(object)
	}
	routes := make([]*Route, len(block))
	for i := range block {
		routes[i] = &block[i]
		routes[i].permitted = permitted
		if s.Orphans[Owner{routes[i].Kind, routes[i].NamespacedName}] {
			routes[i].orphan = newOrphan(routes[i])
		}
	}
	return routes
}

// rankRoutes orders the routes: the oldest first, then by "{namespace}/{name}", then by
// kind.
func rankRoutes(routes []*Route) {
	slices.SortFunc(routes, compareRoutes)
	for i, route := range routes {
		route.source = routing.Route{Kind: route.Kind, NamespacedName: route.NamespacedName, Created: int64(route.age), Rank: i}
	}
}

func compareRoutes(a, b *Route) int {
	if order := cmp.Compare(a.age, b.age); order != 0 {
		return order
	}
	if order := compareNames(a.NamespacedName, b.NamespacedName); order != 0 {
		return order
	}
	return cmp.Compare(a.Kind, b.Kind)
}

func newHTTPRoute(object *gatewayv1.HTTPRoute) Route {
	return newRoute(KindHTTPRoute, object, object.Spec.CommonRouteSpec, object.Spec.Hostnames, object.Spec.Rules)
}

func newRoute(kind string, object metav1.Object, spec gatewayv1.CommonRouteSpec, written []gatewayv1.Hostname, rules []gatewayv1.HTTPRouteRule) Route {
	return Route{
		Kind:           kind,
		NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		Hostnames:      written,
		Rules:          rules,
		generation:     object.GetGeneration(),
		age:            ageOf(object.GetCreationTimestamp()),
		parentRefs:     spec.ParentRefs,
		messageSize:    routeMessageSize(len(spec.ParentRefs)),
		unsupported:    unsupportedHostnames(written),
	}
}

// Kinds of supported routes.
const (
	KindHTTPRoute = routing.KindHTTPRoute
	KindGRPCRoute = routing.KindGRPCRoute
)

// CommonRoute returns pointers to the fields that routes have independent of their kind.
// It returns false when the object is not a supported route.
func CommonRoute(object metav1.Object) (*gatewayv1.CommonRouteSpec, *gatewayv1.RouteStatus, bool) {
	switch o := object.(type) {
	case *gatewayv1.HTTPRoute:
		return &o.Spec.CommonRouteSpec, &o.Status.RouteStatus, true
	case *gatewayv1.GRPCRoute:
		return &o.Spec.CommonRouteSpec, &o.Status.RouteStatus, true
	default:
		return nil, nil, false
	}
}

// resolveRoutes determines each rule's action and the matches that the data plane can
// express. If no listener admits a route, its rules have no actions, so that a namespace
// that the Gateway does not admit cannot make the controller resolve its backends. A few
// routes share two buffers, because there can be thousands of routes, and a route that a later
// decision takes over keeps its buffers in memory.
func resolveRoutes(routes []*Route, t translator, p parents) {
	const few = 64
	var actions []routing.Action
	var matches []ruleMatch
	for i, r := range routes {
		if i%few == 0 {
			size := min(few, len(routes)-i)
			actions, matches = make([]routing.Action, 0, size), make([]ruleMatch, 0, size)
		}
		r.admitted = r.isAdmitted(p)
		actions, matches = t.resolve(r, actions, matches)
	}
}

// resolve appends the actions and the matches of the route to the buffers.
func (t translator) resolve(r *Route, actions []routing.Action, matches []ruleMatch) ([]routing.Action, []ruleMatch) {
	firstAction, firstMatch := len(actions), len(matches)
	unresolved := message.List{Separator: " ", More: "And %d more.", MaxSize: r.messageSize}
	for i := range r.Rules {
		var a ruleAction
		if r.admitted {
			a = t.action(r, i)
		}
		r.addUnresolved(a.problems, &unresolved)
		actions = append(actions, a.action)
		matches = r.appendMatches(matches, i, a, t)
	}
	if r.Unresolved != nil {
		r.Unresolved.Message = unresolved.String()
	}
	r.actions, r.matches = appendedSince(actions, firstAction), appendedSince(matches, firstMatch)
	r.countCosts(t.capabilities.Cost)
	return actions, matches
}

// appendedSince returns the elements of the buffer from the index on. Its capacity is
// limited, so that appending to it does not overwrite the rest of the buffer.
func appendedSince[T any](buffer []T, index int) []T { return buffer[index:len(buffer):len(buffer)] }

// addUnresolved adds the problems to the list with all the route's problems. The first
// one determines the reason.
func (r *Route) addUnresolved(problems []*Problem, list *message.List) {
	for _, problem := range problems {
		list.Add("%s", problem.Message)
		if r.Unresolved == nil {
			r.Unresolved = &Problem{Reason: problem.Reason}
		}
	}
}

// appendMatches appends a rule's matches that the data plane can express. It adds the
// rule to r.Dropped when a match or an action is not supported. A redirect to https has
// no matches if the data plane does not know the request scheme.
func (r *Route) appendMatches(matches []ruleMatch, rule int, a ruleAction, t translator) []ruleMatch {
	if !t.capabilities.KnowsScheme && isHTTPSRedirect(&r.Rules[rule]) {
		r.Dropped = append(r.Dropped, DroppedRule{Rule: rule, LeftOut: true, Redirect: redirectSchemeUnknown, EnvoySupportsActions: a.envoySupports})
		return matches
	}
	dropped := DroppedRule{
		Rule: rule, Actions: a.unsupported, EnvoySupportsActions: a.envoySupports,
		SplitsRequests: len(routing.WeightedBackends(&r.Rules[rule])) > 1, Status: a.action.Status,
	}
	for j, match := range matchesOf(&r.Rules[rule]) {
		if r.skipsExpressions && matchExpressionsLength(&match, r.call(rule, j)) > 0 {
			continue
		}
		translated, fields := t.match(r, rule, j)
		if len(fields) > 0 {
			dropped.Matches = append(dropped.Matches, OmittedMatch{Match: j, Fields: fields, EnvoySupports: t.envoySupports(r, rule, j)})
			continue
		}
		matches = append(matches, translated)
	}
	dropped.LeftOut = len(dropped.Matches) == len(matchesOf(&r.Rules[rule]))
	if len(dropped.Actions) > 0 || len(dropped.Matches) > 0 {
		r.Dropped = append(r.Dropped, dropped)
	}
	return matches
}

// isUnsupported reports whether the data plane cannot express what a rule does.
func (r *Route) isUnsupported(rule int) bool {
	return slices.ContainsFunc(r.Dropped, func(d DroppedRule) bool { return d.Rule == rule && len(d.Actions) > 0 })
}

// matchesOf returns a rule's matches: "If no matches are specified, the default is a
// prefix path match on "/", which has the effect of matching every HTTP request."
// (HTTPRouteRule.Matches)
func matchesOf(rule *gatewayv1.HTTPRouteRule) []gatewayv1.HTTPRouteMatch {
	if len(rule.Matches) == 0 {
		return defaultMatches
	}
	return rule.Matches
}

var defaultMatches = []gatewayv1.HTTPRouteMatch{{}}

// intersections returns where the route's supported hostnames intersect with a listener
// hostname, each with the hostname in the route. It returns none when they do not
// intersect.
func (r *Route) intersections(listener string) iter.Seq[servedHostname] {
	return func(yield func(servedHostname) bool) {
		if len(r.Hostnames) == 0 {
			yield(servedHostname{served: listener})
			return
		}
		for _, written := range r.Hostnames {
			served, ok := routing.Intersect(listener, string(written))
			if !ok || slices.Contains(r.unsupported, string(written)) {
				continue
			}
			if !yield(servedHostname{written: string(written), served: served}) {
				return
			}
		}
	}
}

// hostnamesOnListener returns the permitted intersections with a listener hostname: the
// hostnames under which the listener serves the route.
func (r *Route) hostnamesOnListener(owner Owner, listener string) iter.Seq[servedHostname] {
	return func(yield func(servedHostname) bool) {
		for hostname := range r.intersections(listener) {
			if r.permitted.permitsRoute(r.Namespace, owner, hostname.served) && !yield(hostname) {
				return
			}
		}
	}
}

// hasMoreSpecific reports whether another hostname in the route has the same intersection
// with a listener hostname and decides the order instead.
func (r *Route) hasMoreSpecific(hostname servedHostname, listener string) bool {
	if len(r.Hostnames) < 2 {
		return false // most routes
	}
	for other := range r.intersections(listener) {
		if other.served == hostname.served && routing.CompareRouteHostnames(other.written, hostname.written) < 0 {
			return true
		}
	}
	return false
}

// intersects reports whether a supported hostname in the route intersects with a listener
// hostname.
func (r *Route) intersects(listener string) bool {
	for range r.intersections(listener) {
		return true
	}
	return false
}

// mayUse reports whether the route may use one of the intersections with the listener
// hostname.
func (r *Route) mayUse(l *Listener) bool {
	for range r.hostnamesOnListener(l.Owner, l.Hostname()) {
		return true
	}
	return false
}

type servedHostname struct {
	written string // the hostname in the route, which decides the order
	served  string // the hostname for which the route is served
}

// unsupportedHostnames returns the hostnames that are not supported.
func unsupportedHostnames(written []gatewayv1.Hostname) []string {
	var unsupported []string
	for _, hostname := range written {
		if hostnames.Problem(string(hostname)) != "" {
			unsupported = append(unsupported, string(hostname))
		}
	}
	return unsupported
}

func (r *Route) describeHostnames(size int) string {
	list := message.List{MaxSize: size}
	for _, hostname := range r.Hostnames {
		list.Add("%s", hostname)
	}
	return list.String()
}
