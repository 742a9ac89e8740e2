package gateway

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Route is a route of any kind, written as an HTTPRoute: it keeps all that the
// API says, also what a tunnel's ingress rule cannot express.
type Route struct {
	Kind string
	types.NamespacedName
	// Hostnames are those of the spec; none means the listener's own.
	Hostnames []gatewayv1.Hostname
	// Rules are those of the spec.
	Rules []gatewayv1.HTTPRouteRule
	// Parents has an entry for each parentRef that leads to the Gateway.
	Parents []Parent
	// Unresolved has the reason of the first backendRef that does not resolve,
	// and says of each what is wrong; nil when all resolve.
	Unresolved *Problem
	// Dropped names what an ingress rule cannot express, by rule number.
	Dropped []DroppedRule

	grpc       *gatewayv1.GRPCRoute // what it was written as; nil for an HTTPRoute
	generation int64
	age        age
	parentRefs []gatewayv1.ParentReference
	rank       int          // place among the routes, oldest first
	actions    []ruleAction // one for each rule
	matches    []ruleMatch  // what the tunnel can tell apart, in order
}

// normaliseRoutes returns the snapshot's routes, oldest first, then by
// "{namespace}/{name}", then by kind.
func normaliseRoutes(s *Snapshot) []*Route {
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
	}
	slices.SortFunc(routes, func(a, b *Route) int {
		if order := cmp.Compare(a.age, b.age); order != 0 {
			return order
		}
		if order := compareNames(a.NamespacedName, b.NamespacedName); order != 0 {
			return order
		}
		return cmp.Compare(a.Kind, b.Kind)
	})
	for i, route := range routes {
		route.rank = i
	}
	return routes
}

func newHTTPRoute(object *gatewayv1.HTTPRoute) Route {
	return newRoute(KindHTTPRoute, object, object.Spec.CommonRouteSpec, object.Spec.Hostnames, object.Spec.Rules)
}

func newRoute(kind string, object metav1.Object, spec gatewayv1.CommonRouteSpec, hostnames []gatewayv1.Hostname, rules []gatewayv1.HTTPRouteRule) Route {
	return Route{
		Kind:           kind,
		NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
		Hostnames:      hostnames,
		Rules:          rules,
		generation:     object.GetGeneration(),
		age:            ageOf(object.GetCreationTimestamp()),
		parentRefs:     spec.ParentRefs,
	}
}

// The kinds of routes that ingress rules can serve.
const (
	KindHTTPRoute = "HTTPRoute"
	KindGRPCRoute = "GRPCRoute"
)

// CommonRoute returns what routes of every kind have in common, as parts of
// the object itself, and false for what is no route.
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

// ruleMatch is a match of a rule that a tunnel can tell apart by the path.
type ruleMatch struct {
	rule, match int
	path        pathMatch
	method      methodLength
}

// resolveRoutes finds out what each rule answers and which of its matches the
// tunnel can tell apart. What it finds lies together, because there can be
// thousands of routes.
func resolveRoutes(routes []*Route, backends backendResolver) {
	answers := make([]ruleAction, 0, len(routes))
	matches := make([]ruleMatch, 0, len(routes))
	for _, r := range routes {
		firstAnswer, firstMatch := len(answers), len(matches)
		for i := range r.Rules {
			a, problems := backends.action(r, i)
			r.addUnresolved(problems)
			answers = append(answers, a)
			matches = r.appendMatches(matches, i, a.unsupported)
		}
		r.actions, r.matches = appendedSince(answers, firstAnswer), appendedSince(matches, firstMatch)
	}
}

// appendedSince returns what was appended since, with no room to grow into what follows.
func appendedSince[T any](buffer []T, since int) []T { return buffer[since:len(buffer):len(buffer)] }

func (r *Route) addUnresolved(problems []*Problem) {
	for _, problem := range problems {
		if r.Unresolved == nil {
			r.Unresolved = new(*problem) // the rule's own stays as it is
		} else {
			r.Unresolved.Message += " " + problem.Message
		}
	}
}

// appendMatches appends the matches of a rule that the tunnel can tell apart,
// and notes the fields that it cannot express.
func (r *Route) appendMatches(matches []ruleMatch, rule int, unsupported []string) []ruleMatch {
	dropped := DroppedRule{Rule: rule, Fields: unsupported}
	for j, match := range matchesOf(&r.Rules[rule]) {
		path, fields := translateMatch(match)
		dropped.add(fields)
		if len(fields) == 0 {
			matches = append(matches, ruleMatch{rule: rule, match: j, path: path, method: r.methodLength(rule, j)})
		}
	}
	if len(dropped.Fields) > 0 {
		r.Dropped = append(r.Dropped, dropped)
	}
	return matches
}

// isFullyDropped reports whether no rule at all is served as it was written.
func (r *Route) isFullyDropped() bool {
	return len(r.Dropped) > 0 && len(r.Dropped) == len(r.Rules)
}

// matchesOf: "If no matches are specified, the default is a prefix path match
// on "/", which has the effect of matching every HTTP request."
// (HTTPRouteRule.Matches)
func matchesOf(rule *gatewayv1.HTTPRouteRule) []gatewayv1.HTTPRouteMatch {
	if len(rule.Matches) == 0 {
		return defaultMatches
	}
	return rule.Matches
}

var defaultMatches = []gatewayv1.HTTPRouteMatch{{}}

// hostnamesOnListener yields the hostnames that the route serves on a listener, each
// with the one that the route wrote; none when they do not intersect.
func (r *Route) hostnamesOnListener(listener string) iter.Seq[servedHostname] {
	return func(yield func(servedHostname) bool) {
		if len(r.Hostnames) == 0 {
			yield(servedHostname{served: listener})
			return
		}
		for _, written := range r.Hostnames {
			served, ok := intersect(listener, string(written))
			if ok && !yield(servedHostname{written: string(written), served: served}) {
				return
			}
		}
	}
}

// intersects reports whether the route has a hostname on the listener.
func (r *Route) intersects(listener string) bool {
	for range r.hostnamesOnListener(listener) {
		return true
	}
	return false
}

type servedHostname struct {
	written string // by the route; it decides the order
	served  string // by the ingress rule
}

func (r *Route) describeHostnames() string {
	names := make([]string, len(r.Hostnames))
	for i, hostname := range r.Hostnames {
		names[i] = string(hostname)
	}
	return strings.Join(names, ", ")
}
