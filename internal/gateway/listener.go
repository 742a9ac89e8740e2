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

	"github.com/tunnel-gateway/tunnel-gateway/internal/conditions"
)

// The object kinds that own listeners.
const (
	KindGateway     = "Gateway"
	KindListenerSet = "ListenerSet"
)

// Owner identifies the object that declares a listener. It includes the kind,
// because a Gateway and a ListenerSet can have the same name.
type Owner struct {
	Kind string
	types.NamespacedName
}

func (o Owner) String() string { return o.Kind + " " + o.NamespacedName.String() }

// Listener is a listener on the Gateway or one of its ListenerSets.
type Listener struct {
	// Owner is the Gateway or the ListenerSet that declares the listener.
	Owner Owner
	// Spec is the listener as its owner declares it.
	Spec gatewayv1.Listener
	// Rejected is why the listener is not accepted, or nil when it is accepted.
	Rejected *Problem
	// Unresolved is why one of the references of the listener is not resolved, or nil
	// when all are resolved.
	Unresolved *Problem
	// SupportedKinds are the route kinds that can attach to the listener.
	SupportedKinds []gatewayv1.RouteGroupKind
	// AttachedRoutes counts the attached routes. It does not depend on the listener's
	// state.
	AttachedRoutes int32

	claims      bool   // whether it claims its port and hostname against later owners
	sharedPorts string // the other ports on which the owner uses the hostname
	// certificateWarnings lists the certificates that have expired or were not
	// checked.
	certificateWarnings string
	messageSize         int // the maximum size for a list in a message
	routeNamespaces     namespaceRule
	routes              []*Route // that the listener admits
	// lastAttached and lastCounted prevent adding and counting a route twice.
	lastAttached, lastCounted *Route
	// afterHTTPS reports whether the listener is an HTTP listener whose hostname also has
	// served HTTPS listeners, and the data plane does not know the request scheme.
	afterHTTPS bool
	kinds      attachedKinds // nil while all routes have one kind
}

// Hostname returns the listener hostname. It is empty when the listener matches every
// host.
func (l *Listener) Hostname() string {
	if l.Spec.Hostname == nil {
		return ""
	}
	return string(*l.Spec.Hostname)
}

// Conflicted reports whether the listener conflicts with another listener.
func (l *Listener) Conflicted() bool {
	return l.Rejected != nil && (l.Rejected.Reason == conditions.ReasonHostnameConflict ||
		l.Rejected.Reason == conditions.ReasonProtocolConflict)
}

// Serves reports whether the listener is accepted and all its references are resolved.
// Only such a listener contributes ingress rules.
func (l *Listener) Serves() bool { return l.Rejected == nil && l.Unresolved == nil }

// Set is a ListenerSet whose parentRef names the Gateway.
type Set struct {
	Owner Owner
	// NotAllowed is why the Gateway does not allow the set, or nil when it does.
	NotAllowed *Problem
	// Listeners are the set's entries, in spec order. A set that is not allowed has none.
	Listeners []*Listener

	object *gatewayv1.ListenerSet
}

// UID returns the UID of the ListenerSet.
func (s *Set) UID() types.UID { return s.object.UID }

// Generation returns the generation of the ListenerSet.
func (s *Set) Generation() int64 { return s.object.Generation }

// mergeListeners returns the Gateway's listeners, and the sets in order of precedence:
//
//	"1. "parent" Gateway
//	 2. ListenerSet ordered by creation time (oldest first)
//	 3. ListenerSet ordered alphabetically by "{namespace}/{name}"."
//
// (ListenerSetSpec.Listeners)
func mergeListeners(s *Snapshot) ([]*Listener, []*Set) {
	admission := newListenerAdmission(s)
	sets := make([]*Set, len(s.ListenerSets))
	count := len(s.Gateway.Spec.Listeners)
	for i, object := range s.ListenerSets {
		sets[i] = &Set{Owner: listenerSetOwner(object), object: object, NotAllowed: admission.problem(object.Namespace)}
		if sets[i].NotAllowed == nil {
			count += len(object.Spec.Listeners)
		}
	}
	// One allocation for all listeners, because there can be thousands.
	buffer := make([]Listener, count)
	listeners := newListeners(&buffer, gatewayOwner(s.Gateway), s.Gateway.Spec.Listeners, s.Namespaces)
	for _, set := range sets {
		if set.NotAllowed == nil {
			set.Listeners = newListeners(&buffer, set.Owner, set.object.Spec.Listeners, s.Namespaces)
		}
	}
	slices.SortFunc(sets, func(a, b *Set) int { return compareSets(a.object, b.object) })
	return listeners, sets
}

// compareSets orders ListenerSets by age, and then by the string "{namespace}/{name}".
func compareSets(a, b *gatewayv1.ListenerSet) int {
	if order := cmp.Compare(ageOf(a.CreationTimestamp), ageOf(b.CreationTimestamp)); order != 0 {
		return order
	}
	return compareNames(listenerSetOwner(a).NamespacedName, listenerSetOwner(b).NamespacedName)
}

// newListeners returns the listeners of one owner, allocated from the buffer. A Gateway
// listener and a ListenerSet entry have the same fields.
func newListeners[L gatewayv1.Listener | gatewayv1.ListenerEntry](buffer *[]Listener, owner Owner, specs []L, namespaces map[string]*corev1.Namespace) []*Listener {
	listeners := make([]*Listener, len(specs))
	for i := range specs {
		listeners[i], *buffer = &(*buffer)[0], (*buffer)[1:]
		listeners[i].init(owner, gatewayv1.Listener(specs[i]), namespaces)
		listeners[i].messageSize = listenerMessageSize(len(specs))
	}
	return listeners
}

// NotAllowedListeners returns the entries in ListenerSets that are not allowed, as
// listeners that are not accepted. No decision depends on them.
func (r *Result) NotAllowedListeners() []*Listener {
	if r.notAllowed != nil {
		return r.notAllowed
	}
	for _, set := range r.Sets {
		if set.NotAllowed == nil {
			continue
		}
		buffer := make([]Listener, len(set.object.Spec.Listeners))
		for _, l := range newListeners(&buffer, set.Owner, set.object.Spec.Listeners, nil) {
			l.Rejected = &Problem{Reason: conditions.ReasonNotAllowed, Message: messageSetNotAllowed}
			r.notAllowed = append(r.notAllowed, l)
		}
	}
	return r.notAllowed
}

// AllowedListenerSets returns the ListenerSets that the Gateway allows.
func AllowedListenerSets(s *Snapshot) []*gatewayv1.ListenerSet {
	var allowed []*gatewayv1.ListenerSet
	admission := newListenerAdmission(s)
	for _, set := range s.ListenerSets {
		if admission.problem(set.Namespace) == nil {
			allowed = append(allowed, set)
		}
	}
	return allowed
}

func (l *Listener) init(owner Owner, spec gatewayv1.Listener, namespaces map[string]*corev1.Namespace) {
	l.Owner, l.Spec = owner, spec
	// The CRD defaults allowedRoutes.namespaces.from to Same. For a ListenerSet entry,
	// Same means the namespace of the set.
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
	// Compare the slash after the shorter namespace with the longer namespace.
	if len(a.Namespace) == n {
		return cmp.Compare('/', b.Namespace[n])
	}
	return cmp.Compare(a.Namespace[n], '/')
}

// age is the creation time of an object in seconds, the precision that the API server
// stores. An object without a timestamp, as in a file, counts as the youngest.
type age int64

func ageOf(created metav1.Time) age {
	if created.IsZero() {
		return math.MaxInt64
	}
	return age(created.Unix())
}

// orderByPrecedence returns the listeners on the Gateway and the allowed sets in order of
// precedence.
func orderByPrecedence(gatewayListeners []*Listener, sets []*Set) []*Listener {
	all := slices.Clone(gatewayListeners)
	for _, set := range sets {
		all = append(all, set.Listeners...)
	}
	return all
}

// newListenerAdmission returns the rule for ListenerSet namespaces: "The default value is
// to allow no ListenerSets." (GatewaySpec.AllowedListeners)
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
		decided: map[string]*Problem{},
	}
}

// listenerAdmission decides which ListenerSets a Gateway allows.
type listenerAdmission struct {
	gateway types.NamespacedName
	rule    namespaceRule
	decided map[string]*Problem // by namespace, because a namespace can have thousands of sets
}

// problem returns why the Gateway does not allow ListenerSets from the
// namespace, in enough detail to find the mistake. It returns nil when the
// Gateway allows them.
func (a listenerAdmission) problem(namespace string) *Problem {
	problem, decided := a.decided[namespace]
	if !decided {
		problem = a.decide(namespace)
		a.decided[namespace] = problem
	}
	return problem
}

func (a listenerAdmission) decide(namespace string) *Problem {
	if a.rule.admits(namespace) {
		return nil
	}
	return &Problem{
		Reason: conditions.ReasonNotAllowed,
		Message: fmt.Sprintf("Gateway %s does not allow ListenerSets from namespace %q: spec.allowedListeners.namespaces %s. Ask the Gateway's owner to allow the namespace.",
			a.gateway, namespace, a.rule.describeRejection(namespace)),
	}
}
