package gateway

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// The kinds of objects that own listeners.
const (
	KindGateway     = "Gateway"
	KindListenerSet = "ListenerSet"
)

// Owner is the object that declares a listener. A Gateway and a ListenerSet
// may share a name, so the kind is part of it.
type Owner struct {
	Kind string
	types.NamespacedName
}

func (o Owner) String() string { return o.Kind + " " + o.NamespacedName.String() }

// Listener is a row of the effective hostname table.
type Listener struct {
	Owner Owner
	Spec  gatewayv1.Listener
	// Rejected says why the listener is not accepted; nil when it is.
	Rejected *Problem
	// Unresolved says why its references do not resolve; nil when they do.
	Unresolved *Problem
	// SupportedKinds are the route kinds that it takes.
	SupportedKinds []gatewayv1.RouteGroupKind
	// AttachedRoutes counts the routes attached to it, whatever its own state.
	AttachedRoutes int32

	claims      bool   // keeps its port and hostname from later owners
	sharedPorts string // the owner's other ports with this hostname
	// certificateWarnings says which of its certificates have expired or were not
	// checked.
	certificateWarnings string
	routeNamespaces     namespaceRule
	routes              []*Route // that it admits
	lastAttached        *Route   // for counting a route once
}

// Hostname returns the listener's hostname, or "" when it takes every host.
func (l *Listener) Hostname() string {
	if l.Spec.Hostname == nil {
		return ""
	}
	return string(*l.Spec.Hostname)
}

// Conflicted reports whether the listener lost its place to another one.
func (l *Listener) Conflicted() bool {
	return l.Rejected != nil && (l.Rejected.Reason == string(gatewayv1.ListenerReasonHostnameConflict) ||
		l.Rejected.Reason == string(gatewayv1.ListenerReasonProtocolConflict))
}

// Serves reports whether the listener takes traffic as far as we decide:
// accepted, and its references resolve.
func (l *Listener) Serves() bool { return l.Rejected == nil && l.Unresolved == nil }

// Set is a ListenerSet that points to the Gateway.
type Set struct {
	Owner Owner
	// NotAllowed says why the Gateway does not admit the set; nil when it does.
	NotAllowed *Problem
	// Listeners are the set's entries, in the order of its spec.
	Listeners []*Listener

	object *gatewayv1.ListenerSet
	age    age
}

// mergeListeners returns the Gateway's own listeners and the sets in order of
// precedence:
//
//	"1. "parent" Gateway
//	 2. ListenerSet ordered by creation time (oldest first)
//	 3. ListenerSet ordered alphabetically by "{namespace}/{name}"."
//
// (ListenerSetSpec.Listeners)
func mergeListeners(s *Snapshot) ([]*Listener, []*Set) {
	// One block for all, because there can be thousands.
	block := make([]Listener, countListeners(s))
	own := newListeners(&block, gatewayOwner(s.Gateway), s.Gateway.Spec.Listeners, s.Namespaces)
	admission := newListenerAdmission(s)
	sets := make([]*Set, len(s.ListenerSets))
	for i, object := range s.ListenerSets {
		owner := listenerSetOwner(object)
		sets[i] = &Set{
			Owner: owner, object: object, age: ageOf(object.CreationTimestamp),
			Listeners: newListeners(&block, owner, object.Spec.Listeners, s.Namespaces),
		}
		sets[i].reject(admission.problem(object.Namespace))
	}
	slices.SortFunc(sets, func(a, b *Set) int {
		if order := cmp.Compare(a.age, b.age); order != 0 {
			return order
		}
		return compareNames(a.Owner.NamespacedName, b.Owner.NamespacedName)
	})
	return own, sets
}

func countListeners(s *Snapshot) int {
	n := len(s.Gateway.Spec.Listeners)
	for _, set := range s.ListenerSets {
		n += len(set.Spec.Listeners)
	}
	return n
}

// newListeners takes the listeners of one owner from the block. A Listener of
// a Gateway and an entry of a ListenerSet have the same fields.
func newListeners[L gatewayv1.Listener | gatewayv1.ListenerEntry](block *[]Listener, owner Owner, specs []L, namespaces map[string]*corev1.Namespace) []*Listener {
	listeners := make([]*Listener, len(specs))
	for i := range specs {
		listeners[i], *block = &(*block)[0], (*block)[1:]
		listeners[i].init(owner, gatewayv1.Listener(specs[i]), namespaces)
	}
	return listeners
}

// reject marks the set and its entries as not admitted, if there is a problem.
func (s *Set) reject(problem *Problem) {
	s.NotAllowed = problem
	if problem == nil {
		return
	}
	for _, l := range s.Listeners {
		l.Rejected = &Problem{Reason: string(gatewayv1.ListenerEntryReasonInvalid), Message: "The ListenerSet is not allowed, so its listeners take part in nothing."}
	}
}

func (l *Listener) init(owner Owner, spec gatewayv1.Listener, namespaces map[string]*corev1.Namespace) {
	l.Owner, l.Spec = owner, spec
	// CRD default: allowedRoutes.namespaces.from is Same, and for an entry of a
	// ListenerSet that is the set's namespace.
	from, selector := gatewayv1.NamespacesFromSame, (*metav1.LabelSelector)(nil)
	if spec.AllowedRoutes != nil && spec.AllowedRoutes.Namespaces != nil {
		if f := spec.AllowedRoutes.Namespaces.From; f != nil {
			from = *f
		}
		selector = spec.AllowedRoutes.Namespaces.Selector
	}
	l.SupportedKinds = supportedKinds(l)
	l.routeNamespaces = newNamespaceRule(from, selector, owner.Namespace, namespaces)
}

// compareNames orders by the joined string "{namespace}/{name}".
func compareNames(a, b types.NamespacedName) int {
	if a.Namespace == b.Namespace {
		return strings.Compare(a.Name, b.Name)
	}
	n := min(len(a.Namespace), len(b.Namespace))
	if order := strings.Compare(a.Namespace[:n], b.Namespace[:n]); order != 0 {
		return order
	}
	// The slash after the shorter one meets a byte of the longer one.
	if len(a.Namespace) == n {
		return cmp.Compare('/', b.Namespace[n])
	}
	return cmp.Compare(a.Namespace[n], '/')
}

// age orders objects, the older first. The API stores seconds, so a decision
// must not depend on more. An object without a timestamp, as in a file, is the
// youngest.
type age int64

func ageOf(created metav1.Time) age {
	if created.IsZero() {
		return math.MaxInt64
	}
	return age(created.Unix())
}

// orderByPrecedence lists all listeners, those of sets that are not allowed last.
func orderByPrecedence(own []*Listener, sets []*Set) []*Listener {
	all := slices.Clone(own)
	for _, allowed := range []bool{true, false} {
		for _, set := range sets {
			if (set.NotAllowed == nil) == allowed {
				all = append(all, set.Listeners...)
			}
		}
	}
	return all
}

// newListenerAdmission returns which namespaces may add ListenerSets: "The
// default value is to allow no ListenerSets." (GatewaySpec.AllowedListeners)
func newListenerAdmission(s *Snapshot) listenerAdmission {
	from, selector := gatewayv1.NamespacesFromNone, (*metav1.LabelSelector)(nil)
	if allowed := s.Gateway.Spec.AllowedListeners; allowed != nil && allowed.Namespaces != nil {
		if allowed.Namespaces.From != nil {
			from = *allowed.Namespaces.From
		}
		selector = allowed.Namespaces.Selector
	}
	return listenerAdmission{
		gateway: types.NamespacedName{Namespace: s.Gateway.Namespace, Name: s.Gateway.Name},
		rule:    newNamespaceRule(from, selector, s.Gateway.Namespace, s.Namespaces),
	}
}

// listenerAdmission decides which ListenerSets a Gateway admits.
type listenerAdmission struct {
	gateway types.NamespacedName
	rule    namespaceRule
}

// problem says why sets of the namespace are not admitted, in enough detail
// to find the mistake; nil when they are.
func (a listenerAdmission) problem(namespace string) *Problem {
	if a.rule.admits(namespace) {
		return nil
	}
	return &Problem{
		Reason: string(gatewayv1.ListenerSetReasonNotAllowed),
		Message: fmt.Sprintf("Gateway %s does not allow ListenerSets from namespace %q: spec.allowedListeners.namespaces %s.",
			a.gateway, namespace, a.rule.describeRejection(namespace)),
	}
}
