package gateway

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
)

// Parent is the result of attaching a route through one of its parentRefs.
type Parent struct {
	// Ref is the parentRef as in the route's spec.
	Ref gatewayv1.ParentReference
	// Owner is the Gateway or the ListenerSet that the parentRef names.
	Owner Owner
	// Listeners are the owner's listeners that admit the route.
	Listeners []*Listener
	// Rejected is why the route is not accepted, or nil when it is accepted.
	Rejected *Problem
	// Dropped lists the rules that are not served as written through the Listeners.
	Dropped []DroppedRule
	// RedirectLoops are the matches whose requests through the Listeners the rules redirect in a
	// loop.
	RedirectLoops []RedirectLoop

	// notPermitted are the hostnames on the selected listeners under which the route is
	// not served, because they are not permitted.
	notPermitted []string
}

// OwnerOf returns the object that a parentRef names, for a route in the namespace. It
// returns false when objects with that kind have no listeners.
func OwnerOf(ref gatewayv1.ParentReference, namespace string) (Owner, bool) {
	kind := string(ptr.Deref(ref.Kind, KindGateway))
	owner := Owner{kind, types.NamespacedName{
		Namespace: string(ptr.Deref(ref.Namespace, gatewayv1.Namespace(namespace))),
		Name:      string(ref.Name),
	}}
	return owner, ptr.Deref(ref.Group, gatewayv1.GroupName) == gatewayv1.GroupName &&
		(kind == KindGateway || kind == KindListenerSet)
}

// ParentRefs returns the number of the route's parentRefs. Those to other objects than the
// Gateway and its ListenerSets have no entry in Parents.
func (r *Route) ParentRefs() int { return len(r.parentRefs) }

// attachRoutes attaches the routes, the oldest first, to the listeners that admit
// them. It ignores parentRefs to other objects.
func attachRoutes(routes []*Route, p parents) {
	attached := make([]Parent, 0, len(routes))
	for _, route := range routes {
		first := len(attached)
		for _, ref := range route.parentRefs {
			owner, ok := OwnerOf(ref, route.Namespace)
			if parent, found := p[owner]; ok && found {
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

// addRoute adds a route to the listener, once for all its parentRefs. A route that the
// listener admits but that is not accepted does not count as attached, but its rules
// still return 500.
func (l *Listener) addRoute(route *Route, accepted bool) {
	if accepted && l.lastCounted != route {
		l.lastCounted = route
		l.AttachedRoutes++
	}
	if l.lastAttached == route {
		return
	}
	l.lastAttached = route
	l.routes = append(l.routes, route)
	if l.kinds != nil {
		l.kinds.add(route, l)
	}
}

// attach tries to attach the route to each of the owner's listeners. When no listener
// admits the route, the reason describes the furthest step that the route reached on any
// listener.
func attach(route *Route, ref gatewayv1.ParentReference, owner Owner, p parentListeners) Parent {
	parent := Parent{Ref: ref, Owner: owner, Dropped: route.Dropped}
	if p.notAllowed != nil {
		cause := p.notAllowed.Message
		switch {
		case route.Namespace != owner.Namespace:
			// The labels on the namespace of the set are not visible to other tenants.
			cause = "its Gateway does not allow it."
		case message.Size(cause) > route.messageSize:
			cause = "its Gateway does not allow it. See its Accepted condition."
		}
		parent.Rejected = routeProblem(conditions.ReasonNoMatchingParent, "%s is not allowed: %s", owner, cause)
		return parent
	}
	furthest := stepNone
	selected := p.inSection(ref.SectionName)
	for _, l := range selected {
		step := route.attachmentStep(l, ref)
		if step == stepAdmitted {
			parent.Listeners = append(parent.Listeners, l)
		}
		if step >= stepIntersecting && step != stepUnsupported && route.permitted.appliesToRoute(route.Namespace, owner) {
			parent.notPermitted = route.addNotPermitted(parent.notPermitted, l)
		}
		furthest = max(furthest, step)
	}
	switch furthest {
	case stepNone:
		parent.Rejected = noMatchingParent(route, ref, owner, p.listeners)
	case stepAdmitted:
		parent.Dropped = route.droppedAt(parent.Listeners)
		parent.Rejected = route.unsupportedProblem(parent.Dropped)
	default:
		parent.Rejected = route.problemAtStep(furthest, ref, selected)
	}
	return parent
}

// step is the last step that a route reaches when it attaches to a listener.
type step int

const (
	stepNone         step = iota // the parentRef does not select the listener
	stepSelected                 // selected, but allowedRoutes does not admit the route
	stepAllowed                  // allowed, but the hostnames do not intersect
	stepIntersecting             // intersecting, but no intersection is permitted
	stepPermitted                // permitted, but a route with another kind has the hostname
	stepUnsupported              // allowed, but none of the route's hostnames is supported
	stepAdmitted                 // the listener admits the route
)

func (r *Route) attachmentStep(l *Listener, ref gatewayv1.ParentReference) step {
	switch {
	case !selects(ref, l):
		return stepNone
	case !l.routeNamespaces.admits(r.Namespace) || !admitsKind(l, r.Kind):
		return stepSelected
	case len(r.unsupported) > 0 && len(r.unsupported) == len(r.Hostnames):
		return stepUnsupported
	case !r.intersects(l.Hostname()):
		return stepAllowed
	case r.permitted != nil && !r.mayUse(l):
		return stepIntersecting
	case l.hasConflictingKind(r):
		return stepPermitted
	default:
		return stepAdmitted
	}
}

// problemAtStep returns why the route is not accepted, given the furthest step that it
// reached on a listener. No listener admits it.
func (r *Route) problemAtStep(furthest step, ref gatewayv1.ParentReference, listeners []*Listener) *Problem {
	reached := slices.DeleteFunc(slices.Clone(listeners), func(l *Listener) bool { return r.attachmentStep(l, ref) != furthest })
	switch furthest {
	case stepUnsupported:
		return r.unsupportedHostnamesProblem()
	case stepPermitted:
		return routeKindConflict(reached[0])
	case stepIntersecting:
		return r.notPermitted(reached)
	case stepAllowed:
		return noMatchingHostname(r, reached)
	default:
		return notAllowedByListeners(r, reached)
	}
}

// selects reports whether the parentRef selects the listener: "When both Port and
// SectionName are specified, the name and port of the selected listener must match both
// specified values." (ParentReference.Port)
func selects(ref gatewayv1.ParentReference, l *Listener) bool {
	return (ref.SectionName == nil || *ref.SectionName == l.Spec.Name) &&
		(ref.Port == nil || *ref.Port == l.Spec.Port)
}

// unsupportedProblem returns a problem when none of the route's rules is served as
// written, or nil.
func (r *Route) unsupportedProblem(dropped []DroppedRule) *Problem {
	if !r.isFullyDropped(dropped) {
		return nil
	}
	reason := conditions.ReasonUnsupportedValue
	if !slices.ContainsFunc(dropped, func(d DroppedRule) bool { return !d.hasIncompatibleFilters() }) {
		reason = conditions.ReasonIncompatibleFilters
	}
	const first = "The controller serves none of the route's rules as written. "
	return &Problem{Reason: reason, Message: first + describeDropped(r.messageSize-len(first), dropped...)}
}

// noMatchingParent returns the problem with a parentRef that selects no listener. The
// message lists only listeners that admit the route namespace: it must not reveal the
// other listeners.
func noMatchingParent(route *Route, ref gatewayv1.ParentReference, owner Owner, listeners []*Listener) *Problem {
	var wanted []string
	if ref.SectionName != nil {
		wanted = append(wanted, fmt.Sprintf("the name %q", *ref.SectionName))
	}
	if ref.Port != nil {
		wanted = append(wanted, fmt.Sprintf("port %d", *ref.Port))
	}
	if len(wanted) == 0 {
		return routeProblem(conditions.ReasonNoMatchingParent, "%s has no listeners.", owner)
	}
	admitting := slices.DeleteFunc(slices.Clone(listeners), func(l *Listener) bool { return !l.routeNamespaces.admits(route.Namespace) })
	if len(admitting) == 0 {
		return routeProblem(conditions.ReasonNoMatchingParent,
			"%s has no listener with %s, and none that allows routes from namespace %q. Correct the parentRef, or ask the owner of the listeners to allow the namespace.", owner, strings.Join(wanted, " and "), route.Namespace)
	}
	return routeProblem(conditions.ReasonNoMatchingParent,
		"%s has no listener with %s. Correct the parentRef; available listeners: %s.", owner, strings.Join(wanted, " and "), describeListeners(admitting, route.messageSize/2))
}

func notAllowedByListeners(route *Route, selected []*Listener) *Problem {
	const limit = 5 // a Gateway can have many listeners
	list := message.List{
		Before:    fmt.Sprintf("No listener allows the route from namespace %q: ", route.Namespace),
		Separator: "; ", After: ". Ask the owner of the listeners to change allowedRoutes.", MaxSize: route.messageSize,
	}
	for i, l := range selected {
		switch {
		case i == limit || list.Full():
			list.Count(len(selected) - i)
			return &Problem{Reason: conditions.ReasonNotAllowedByListeners, Message: list.String()}
		case admitsKind(l, route.Kind):
			list.Add("listener %q: allowedRoutes.namespaces %s", l.Spec.Name, l.routeNamespaces.describeRejection(route.Namespace))
		default:
			list.Add("listener %q does not allow routes of kind %s", l.Spec.Name, route.Kind)
		}
	}
	return &Problem{Reason: conditions.ReasonNotAllowedByListeners, Message: list.String()}
}

func noMatchingHostname(route *Route, permitted []*Listener) *Problem {
	return routeProblem(conditions.ReasonNoMatchingListenerHostname,
		"None of the route's hostnames (%s) intersects with a listener hostname: %s. Change spec.hostnames, or add a listener.", route.describeHostnames(route.messageSize/3), describeListeners(permitted, route.messageSize/3))
}

func routeKindConflict(l *Listener) *Problem {
	return routeProblem(conditions.ReasonRouteKindConflict,
		"Listener %q already has a route of another kind with an intersecting hostname, which takes precedence because it is older or comes first in alphabetical order. Use different hostnames for HTTPRoutes and GRPCRoutes.",
		l.Spec.Name)
}

// describeListeners lists at most five listeners, because a Gateway can have
// many.
func describeListeners(listeners []*Listener, size int) string {
	list := message.List{MaxItems: 5, MaxSize: size}
	for _, l := range listeners {
		hostname := l.Hostname()
		if hostname == "" {
			hostname = "every hostname"
		}
		list.Add("%q (%s, port %d)", l.Spec.Name, hostname, l.Spec.Port)
	}
	return list.String()
}
