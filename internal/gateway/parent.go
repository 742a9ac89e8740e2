package gateway

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Parent is how a route fares at one of its parentRefs.
type Parent struct {
	// Ref is the parentRef as the route's spec has it.
	Ref gatewayv1.ParentReference
	// Owner is the Gateway or ListenerSet that it leads to.
	Owner Owner
	// Listeners are those of the owner that admit the route.
	Listeners []*Listener
	// Rejected says why the route is not accepted there; nil when it is.
	Rejected *Problem
}

// OwnerOf returns the object that a parentRef of an object in the namespace
// leads to, and false when it is of no kind that owns listeners.
func OwnerOf(ref gatewayv1.ParentReference, namespace string) (Owner, bool) {
	kind := string(ptr.Deref(ref.Kind, KindGateway))
	owner := Owner{kind, types.NamespacedName{
		Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))),
		Name:      string(ref.Name),
	}}
	return owner, ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName &&
		(kind == KindGateway || kind == KindListenerSet)
}

// parents are the objects that routes can attach to here.
type parents map[Owner]parentListeners

type parentListeners struct {
	listeners  []*Listener
	notAllowed *Problem // of a ListenerSet
}

func newParents(s *Snapshot, own []*Listener, sets []*Set) parents {
	p := make(parents, 1+len(sets))
	self := gatewayOwner(s.Gateway)
	p[self] = parentListeners{listeners: own}
	for _, set := range sets {
		p[set.Owner] = parentListeners{listeners: set.Listeners, notAllowed: set.NotAllowed}
	}
	return p
}

// attachRoutes decides about every parentRef that leads here, the older routes
// first, and gives each listener the routes that it admits.
func attachRoutes(routes []*Route, p parents) {
	attached := make([]Parent, 0, len(routes))
	for _, route := range routes {
		first := len(attached)
		for _, ref := range route.parentRefs {
			owner, ok := OwnerOf(ref, route.Namespace)
			if parent, here := p[owner]; ok && here {
				attached = append(attached, attach(route, ref, owner, parent))
			}
		}
		route.Parents = appendedSince(attached, first)
		for _, parent := range route.Parents {
			for _, l := range parent.Listeners {
				l.addRoute(route, parent.Rejected == nil)
			}
		}
	}
}

// addRoute notes a route once, however many parentRefs lead here. A route that is
// not accepted although the listener admits it does not count, but still puts
// in the 500 answers of what it asks for and cannot get.
func (l *Listener) addRoute(route *Route, accepted bool) {
	if l.lastAttached == route {
		return
	}
	l.lastAttached = route
	if accepted {
		l.AttachedRoutes++
	}
	l.routes = append(l.routes, route)
}

// attach tries the owner's listeners one by one. A route that none of them
// admits gets the reason of the furthest step that one of them reached.
func attach(route *Route, ref gatewayv1.ParentReference, owner Owner, p parentListeners) Parent {
	parent := Parent{Ref: ref, Owner: owner}
	if p.notAllowed != nil {
		why := p.notAllowed.Message
		if route.Namespace != owner.Namespace {
			why = "its Gateway does not allow it." // the labels of its namespace are not this one's business
		}
		parent.Rejected = routeProblem(gatewayv1.RouteReasonNoMatchingParent, "%s has no listeners in effect: %s", owner, why)
		return parent
	}
	furthest := stepNone
	for _, l := range p.listeners {
		step := route.attachmentStep(l, ref)
		if step == stepAdmitted {
			parent.Listeners = append(parent.Listeners, l)
		}
		furthest = max(furthest, step)
	}
	parent.Rejected = route.problemAtStep(furthest, &parent, p.listeners)
	return parent
}

// step is how far a route gets at a listener.
type step int

const (
	stepNone         step = iota // the parentRef does not select it
	stepSelected                 // its allowedRoutes do not admit the route
	stepAllowed                  // their hostnames do not intersect
	stepKindConflict             // it has a route of another kind there
	stepAdmitted
)

func (r *Route) attachmentStep(l *Listener, ref gatewayv1.ParentReference) step {
	switch {
	case !selects(ref, l):
		return stepNone
	case !l.routeNamespaces.admits(r.Namespace) || !admitsKind(l, r.Kind):
		return stepSelected
	case !r.intersects(l.Hostname()):
		return stepAllowed
	case l.hasConflictingKind(r):
		return stepKindConflict
	default:
		return stepAdmitted
	}
}

// problemAtStep says why the route is not accepted, given the furthest step.
func (r *Route) problemAtStep(furthest step, parent *Parent, listeners []*Listener) *Problem {
	if furthest == stepAdmitted {
		return r.unsupportedProblem()
	}
	// The listeners at which the route got that far.
	at := slices.DeleteFunc(slices.Clone(listeners), func(l *Listener) bool { return r.attachmentStep(l, parent.Ref) != furthest })
	switch furthest {
	case stepKindConflict:
		return routeKindConflict(r, at[0])
	case stepAllowed:
		return noMatchingHostname(r, at)
	case stepSelected:
		return notAllowedByListeners(r, at)
	default:
		return noMatchingParent(r, parent.Ref, parent.Owner, listeners)
	}
}

// hasConflictingKind reports whether the listener has a route of another kind on a
// hostname of this one already: "If a Route (A) of type HTTPRoute or GRPCRoute
// is attached to a Listener and that listener already has another Route (B) of
// the other type attached and the intersection of the hostnames of A and B is
// non-empty, then the implementation MUST accept exactly one of these two
// routes", the older one. (GRPCRouteSpec.Hostnames)
func (l *Listener) hasConflictingKind(route *Route) bool {
	return slices.ContainsFunc(l.routes, func(other *Route) bool {
		return other.Kind != route.Kind && !other.isFullyDropped() && shareHostname(route.hostnamesOnListener(l.Hostname()), other.hostnamesOnListener(l.Hostname()))
	})
}

func shareHostname(a, b iter.Seq[servedHostname]) bool {
	for x := range a {
		for y := range b {
			if _, ok := intersect(x.served, y.served); ok {
				return true
			}
		}
	}
	return false
}

// selects: "When both Port and SectionName are specified, the name and port of
// the selected listener must match both specified values."
// (ParentReference.Port)
func selects(ref gatewayv1.ParentReference, l *Listener) bool {
	return (ref.SectionName == nil || *ref.SectionName == l.Spec.Name) &&
		(ref.Port == nil || *ref.Port == l.Spec.Port)
}

// unsupportedProblem rejects a route of which nothing is served as it was written.
func (r *Route) unsupportedProblem() *Problem {
	if !r.isFullyDropped() {
		return nil
	}
	return routeProblem(gatewayv1.RouteReasonUnsupportedValue,
		"A tunnel cannot express any rule of this route as written. %s.", describeDropped(r.Dropped))
}

// noMatchingParent lists only listeners that admit the route's namespace: what
// others have is nobody's business.
func noMatchingParent(route *Route, ref gatewayv1.ParentReference, owner Owner, listeners []*Listener) *Problem {
	var wanted []string
	if ref.SectionName != nil {
		wanted = append(wanted, fmt.Sprintf("the name %q", *ref.SectionName))
	}
	if ref.Port != nil {
		wanted = append(wanted, fmt.Sprintf("port %d", *ref.Port))
	}
	if len(wanted) == 0 {
		return routeProblem(gatewayv1.RouteReasonNoMatchingParent, "%s has no listeners.", owner)
	}
	admitting := slices.DeleteFunc(slices.Clone(listeners), func(l *Listener) bool { return !l.routeNamespaces.admits(route.Namespace) })
	if len(admitting) == 0 {
		return routeProblem(gatewayv1.RouteReasonNoMatchingParent,
			"%s has no listener with %s, and none that admits namespace %q.", owner, strings.Join(wanted, " and "), route.Namespace)
	}
	return routeProblem(gatewayv1.RouteReasonNoMatchingParent,
		"%s has no listener with %s; it has %s.", owner, strings.Join(wanted, " and "), describeListeners(admitting))
}

func notAllowedByListeners(route *Route, selected []*Listener) *Problem {
	reasons := make([]string, len(selected))
	for i, l := range selected {
		if admitsKind(l, route.Kind) {
			reasons[i] = fmt.Sprintf("listener %q: allowedRoutes.namespaces %s", l.Spec.Name, l.routeNamespaces.describeRejection(route.Namespace))
		} else {
			reasons[i] = fmt.Sprintf("listener %q does not take routes of kind %s", l.Spec.Name, route.Kind)
		}
	}
	return routeProblem(gatewayv1.RouteReasonNotAllowedByListeners,
		"No listener allows this route from namespace %q: %s.", route.Namespace, strings.Join(reasons, "; "))
}

func noMatchingHostname(route *Route, permitted []*Listener) *Problem {
	return routeProblem(gatewayv1.RouteReasonNoMatchingListenerHostname,
		"None of the hostnames %s intersects with a listener: %s.", route.describeHostnames(), describeListeners(permitted))
}

// ReasonRouteKindConflict is ours: the API names no reason for it.
const ReasonRouteKindConflict = "RouteKindConflict"

func routeKindConflict(route *Route, l *Listener) *Problem {
	return routeProblem(ReasonRouteKindConflict,
		"Listener %q has a route of another kind than %s on an intersecting hostname, which goes first (the older one, then by name); one hostname of a listener has routes of one kind.",
		l.Spec.Name, route.Kind)
}

// describeListeners names at most a few: a Gateway can have many.
func describeListeners(listeners []*Listener) string {
	const most = 5
	var parts []string
	for i, l := range listeners {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %d more", len(listeners)-most))
			break
		}
		hostname := l.Hostname()
		if hostname == "" {
			hostname = "every hostname"
		}
		parts = append(parts, fmt.Sprintf("%q (%s, port %d)", l.Spec.Name, hostname, l.Spec.Port))
	}
	return strings.Join(parts, ", ")
}
