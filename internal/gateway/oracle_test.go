package gateway_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// oracle implements the specification independently, so that both implementations are
// unlikely to have the same bugs. It is slow and simple: it decides about each request,
// whereas Build sorts a table. It shares only the input types with the package.
type oracle struct {
	snapshot   *gateway.Snapshot
	everything bool         // whether the data plane can express every match and action
	envoy      bool         // whether the data plane is Envoy, which can express almost everything
	claims     []*claim     // in order of precedence; sets that are not allowed come last
	routes     []*specRoute // the oldest first
	attached   map[*claim][]*specRoute
	compiled   map[string]*regexp.Regexp
}

// claim is a listener and the decision about it.
type claim struct {
	gatewayv1.Listener
	owner      gateway.Owner
	allowed    bool
	reason     string // with Accepted=False; empty when the listener is accepted
	refsReason string // with ResolvedRefs=False; empty when all references are resolved
	claims     bool   // whether it claims its port and hostname against later owners
}

const (
	answerNotFound = "http_status:404"
	answerError    = "http_status:500"
)

// newOracle returns the oracle for ingress rules.
func newOracle(s *gateway.Snapshot) *oracle { return newOracleFor(s, false) }

// newOracleFor returns the oracle for ingress rules, or for a data plane that can
// express everything.
func newOracleFor(s *gateway.Snapshot, everything bool) *oracle {
	o := &oracle{snapshot: s, everything: everything, attached: map[*claim][]*specRoute{}, compiled: map[string]*regexp.Regexp{}}
	owners := [][]*claim{o.claimsOf(gateway.KindGateway, s.Gateway, s.Gateway.Spec.Listeners, true)}
	var notAllowed []*claim
	for _, set := range setsByPrecedence(s.ListenerSets) {
		var listeners []gatewayv1.Listener
		for _, entry := range set.Spec.Listeners {
			listeners = append(listeners, gatewayv1.Listener(entry))
		}
		claims := o.claimsOf(gateway.KindListenerSet, set, listeners, o.allows(set))
		if o.allows(set) {
			owners = append(owners, claims)
		} else {
			notAllowed = append(notAllowed, claims...)
		}
	}
	resolveClaims(owners)
	o.claims = append(slices.Concat(owners...), notAllowed...)
	o.attachRoutes()
	return o
}

// setsByPrecedence sorts the ListenerSets from the oldest to the youngest, then by
// "namespace/name". A set without a creation time is the youngest.
func setsByPrecedence(sets []*gatewayv1.ListenerSet) []*gatewayv1.ListenerSet {
	return slices.SortedFunc(slices.Values(sets), func(a, b *gatewayv1.ListenerSet) int {
		if order := byAge(a.CreationTimestamp, b.CreationTimestamp); order != 0 {
			return order
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

func byAge(a, b metav1.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	default:
		return cmp.Compare(a.Unix(), b.Unix())
	}
}

func (o *oracle) claimsOf(kind string, owner metav1.Object, listeners []gatewayv1.Listener, allowed bool) []*claim {
	var claims []*claim
	for _, listener := range listeners {
		name := types.NamespacedName{Namespace: owner.GetNamespace(), Name: owner.GetName()}
		c := &claim{Listener: listener, owner: gateway.Owner{Kind: kind, NamespacedName: name}, allowed: allowed}
		switch {
		case !allowed:
			c.reason = "Invalid"
		case !o.ownerMayUse(c, c.hostname()):
			c.reason = "HostnameNotPermitted"
		}
		c.refsReason = o.unresolved(c)
		claims = append(claims, c)
	}
	return claims
}

func newEnvoyOracle(s *gateway.Snapshot) *oracle {
	o := newOracleFor(s, true)
	o.envoy, o.attached = true, map[*claim][]*specRoute{}
	o.attachRoutes() // a route that is not served at all keeps out no route with another kind
	return o
}

func (o *oracle) allows(set *gatewayv1.ListenerSet) bool {
	allowed := o.snapshot.Gateway.Spec.AllowedListeners
	if allowed == nil || allowed.Namespaces == nil || allowed.Namespaces.From == nil {
		return false
	}
	return o.admitsNamespace(*allowed.Namespaces.From, allowed.Namespaces.Selector, o.snapshot.Gateway.Namespace, set.Namespace)
}

func (o *oracle) admitsNamespace(from gatewayv1.FromNamespaces, selector *metav1.LabelSelector, ownerNamespace, namespace string) bool {
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return ownerNamespace == namespace
	case gatewayv1.NamespacesFromSelector:
		s, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && s.Matches(labels.Set(o.snapshot.Namespaces[namespace].Labels))
	default:
		return false
	}
}

// resolveClaims resolves each owner's conflicts in order of precedence: first with
// earlier owners, then between the owner's listeners.
func resolveClaims(owners [][]*claim) {
	var earlier []*claim
	for _, listeners := range owners {
		var remaining []*claim
		for _, c := range listeners {
			if c.reason == "" {
				c.reason = conflictReason(c, earlier)
			}
			if c.reason == "" {
				remaining = append(remaining, c)
			}
		}
		for _, c := range remaining {
			c.claims = true
			c.reason = conflictReason(c, slices.DeleteFunc(slices.Clone(remaining), func(other *claim) bool {
				return c == other || c.Port != other.Port // one owner can use a hostname on several ports
			}))
		}
		earlier = append(earlier, remaining...)
	}
}

// conflictReason compares protocols before hostnames, and the listener's own port
// before other ports.
func conflictReason(c *claim, earlier []*claim) string {
	conflict := func(conflicts func(other *claim) bool) bool { return slices.ContainsFunc(earlier, conflicts) }
	switch {
	case conflict(func(other *claim) bool { return other.Port == c.Port && other.Protocol != c.Protocol }):
		return "ProtocolConflict"
	case !c.supported():
		return "UnsupportedProtocol"
	case isUnsupportedHostname(c.hostname()):
		return "UnsupportedValue"
	case conflict(func(other *claim) bool { return other.Port == c.Port && c.hostname() == other.hostname() }):
		return "HostnameConflict"
	case conflict(func(other *claim) bool { return other.Port != c.Port && c.hostname() == other.hostname() }):
		return "PortUnavailable"
	default:
		return ""
	}
}

func hostnameOf(l gatewayv1.Listener) string {
	if l.Hostname == nil {
		return ""
	}
	return string(*l.Hostname)
}

func (c *claim) hostname() string { return hostnameOf(c.Listener) }

func (c *claim) supported() bool {
	return c.Protocol == gatewayv1.HTTPProtocolType || c.Protocol == gatewayv1.HTTPSProtocolType
}

func (c *claim) conflicted() bool {
	return c.reason == "HostnameConflict" || c.reason == "ProtocolConflict"
}

// unresolved returns the reason for ResolvedRefs=False, or "". It performs each check for
// all references before the next check.
func (o *oracle) unresolved(c *claim) string {
	notSupported := func(kind gatewayv1.RouteGroupKind) bool {
		return !c.supported() || !isRouteKind(kind)
	}
	var refs []gatewayv1.SecretObjectReference
	if c.TLS != nil {
		refs = c.TLS.CertificateRefs
	}
	notSecret := func(ref gatewayv1.SecretObjectReference) bool {
		return ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Secret"
	}
	notPermitted := func(ref gatewayv1.SecretObjectReference) bool {
		return !o.granted(c.owner.Kind, c.owner.Namespace, "Secret", c.secret(ref))
	}
	notValid := func(ref gatewayv1.SecretObjectReference) bool {
		certificate, exists := o.snapshot.Certificates[c.secret(ref)]
		return !exists || certificate.Problem != ""
	}
	switch {
	case slices.ContainsFunc(c.kinds(), notSupported):
		return "InvalidRouteKinds"
	case slices.ContainsFunc(refs, notSecret):
		return "InvalidCertificateRef"
	case slices.ContainsFunc(refs, notPermitted):
		return "RefNotPermitted"
	case slices.ContainsFunc(refs, notValid):
		return "InvalidCertificateRef"
	default:
		return ""
	}
}

func (c *claim) resolved() bool { return c.refsReason == "" }

func (c *claim) secret(ref gatewayv1.SecretObjectReference) types.NamespacedName {
	name := types.NamespacedName{Namespace: c.owner.Namespace, Name: string(ref.Name)}
	if ref.Namespace != nil {
		name.Namespace = string(*ref.Namespace)
	}
	return name
}

// granted reports whether a reference is permitted. A reference to another namespace
// requires a grant in which every field matches. The name in the grant is optional.
func (o *oracle) granted(kind, namespace, toKind string, to types.NamespacedName) bool {
	group := gatewayv1.Group("")
	if toKind == "ServiceImport" {
		group = "multicluster.x-k8s.io"
	}
	return namespace == to.Namespace || slices.ContainsFunc(o.snapshot.Grants, func(grant *gatewayv1beta1.ReferenceGrant) bool {
		from := func(f gatewayv1.ReferenceGrantFrom) bool {
			return f.Group == gatewayv1.GroupName && string(f.Kind) == kind && string(f.Namespace) == namespace
		}
		target := func(t gatewayv1.ReferenceGrantTo) bool {
			return t.Group == group && string(t.Kind) == toKind && (t.Name == nil || string(*t.Name) == to.Name)
		}
		return grant.Namespace == to.Namespace && slices.ContainsFunc(grant.Spec.From, from) && slices.ContainsFunc(grant.Spec.To, target)
	})
}

func (c *claim) kinds() []gatewayv1.RouteGroupKind {
	if c.AllowedRoutes == nil {
		return nil
	}
	return c.AllowedRoutes.Kinds
}

func isRouteKind(kind gatewayv1.RouteGroupKind) bool {
	return isKind(kind, "HTTPRoute") || isKind(kind, "GRPCRoute")
}

func isKind(kind gatewayv1.RouteGroupKind, name string) bool {
	return (kind.Group == nil || *kind.Group == gatewayv1.GroupName) && string(kind.Kind) == name
}

// serves reports whether the listener is accepted and all references are resolved.
// Only such listeners contribute routes to their group.
func (c *claim) serves() bool { return c.reason == "" && c.resolved() }

// accepted reports whether the Gateway is accepted: it requests no address, and at least
// one of its own listeners is accepted, or it has no listeners.
func (o *oracle) accepted() bool {
	for _, address := range o.snapshot.Gateway.Spec.Addresses {
		if address.Value != "" {
			return false
		}
	}
	claims := o.claimsAt(gateway.KindGateway, o.snapshot.Gateway.Namespace, o.snapshot.Gateway.Name)
	return len(claims) == 0 || slices.ContainsFunc(claims, func(c *claim) bool { return c.reason == "" })
}

func (o *oracle) claimsAt(kind, namespace, name string) []*claim {
	owner := gateway.Owner{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	return slices.DeleteFunc(slices.Clone(o.claims), func(c *claim) bool { return c.owner != owner })
}

// groupOf returns the most specific claimed hostname that matches the host, whether
// or not its listeners are served.
func (o *oracle) groupOf(host string) (hostname string, found bool) {
	for _, c := range o.claims {
		if c.claims && hostMatches(c.hostname(), host) && (!found || specificity(c.hostname()) > specificity(hostname)) {
			hostname, found = c.hostname(), true
		}
	}
	return hostname, found
}

// specificity orders the hostnames that match the same host: exact hostnames are the
// most specific, then longer wildcards, then shorter wildcards, then the empty
// hostname.
func specificity(hostname string) int {
	if hostname != "" && !strings.HasPrefix(hostname, "*.") {
		return 1000 + len(hostname)
	}
	return len(hostname)
}

func hostMatches(pattern, host string) bool {
	return pattern == "" || pattern == host || covers(pattern, host)
}

// covers reports whether a wildcard matches the name, or every host that a narrower
// wildcard matches.
func covers(wildcard, name string) bool {
	suffix, ok := strings.CutPrefix(wildcard, "*")
	return ok && strings.HasSuffix(name, suffix) && len(name) > len(suffix)
}

func hostnamesIntersect(a, b string) bool {
	return hostMatches(a, b) || hostMatches(b, a)
}

// selected returns the listeners that a parentRef selects. A ListenerSet that is not
// allowed has none.
func (o *oracle) selected(ref gatewayv1.ParentReference, namespace string) []*claim {
	if ref.Group != nil && *ref.Group != gatewayv1.GroupName {
		return nil
	}
	kind := gateway.KindGateway
	if ref.Kind != nil {
		kind = string(*ref.Kind)
	}
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	return slices.DeleteFunc(o.claimsAt(kind, namespace, string(ref.Name)), func(c *claim) bool {
		return !c.allowed || ref.SectionName != nil && *ref.SectionName != c.Name || ref.Port != nil && *ref.Port != c.Port
	})
}

// allowsRoutes reports whether allowedRoutes on the listener admit the route.
func (o *oracle) allowsRoutes(c *claim, route *specRoute) bool {
	allowsKind := func(kind gatewayv1.RouteGroupKind) bool { return isKind(kind, route.kind) }
	if !c.supported() || len(c.kinds()) > 0 && !slices.ContainsFunc(c.kinds(), allowsKind) {
		return false
	}
	from, selector := gatewayv1.NamespacesFromSame, (*metav1.LabelSelector)(nil)
	if c.AllowedRoutes != nil && c.AllowedRoutes.Namespaces != nil {
		selector = c.AllowedRoutes.Namespaces.Selector
		if c.AllowedRoutes.Namespaces.From != nil {
			from = *c.AllowedRoutes.Namespaces.From
		}
	}
	return o.admitsNamespace(from, selector, c.owner.Namespace, route.Namespace)
}

// intersects reports whether the listener allows the route and their hostnames
// intersect.
func (o *oracle) intersects(c *claim, route *specRoute) bool {
	return o.allowsRoutes(c, route) && slices.ContainsFunc(route.hostnames, func(written string) bool {
		return !isUnsupportedHostname(written) && hostnamesIntersect(c.hostname(), written)
	})
}

// admits reports whether the listener admits the route: the route may use a hostname, and
// no older route with the other kind is attached to the listener with a common hostname.
func (o *oracle) admits(c *claim, route *specRoute) bool {
	return o.permits(c, route) && !slices.ContainsFunc(o.attached[c], func(other *specRoute) bool {
		return other.kind != route.kind && compareRouteAge(other, route) < 0 && o.isPartlySupported(other, c) && o.haveCommonHostname(c, other, route)
	})
}

// haveCommonHostname reports whether both routes serve a common hostname on a
// listener. Hostnames that intersect in pairs have a common intersection.
func (o *oracle) haveCommonHostname(c *claim, a, b *specRoute) bool {
	return slices.ContainsFunc(o.servedOn(c, a), func(x string) bool {
		return slices.ContainsFunc(o.servedOn(c, b), func(y string) bool { return hostnamesIntersect(x, y) })
	})
}

// attachRoutes attaches the routes to the listeners that admit them, the oldest
// first.
func (o *oracle) attachRoutes() {
	o.routes = specRoutes(o.snapshot)
	for _, route := range o.routes {
		for _, ref := range route.parentRefs {
			for _, c := range o.selected(ref, route.Namespace) {
				if o.admits(c, route) && !slices.Contains(o.attached[c], route) {
					o.attached[c] = append(o.attached[c], route)
				}
			}
		}
	}
}

// routeReason returns the reason of the Accepted condition for a parentRef.
func (o *oracle) routeReason(ref gatewayv1.ParentReference, route *specRoute) string {
	selected := o.selected(ref, route.Namespace)
	admitting := slices.DeleteFunc(slices.Clone(selected), func(c *claim) bool { return !o.admits(c, route) })
	reaches := func(step func(*claim, *specRoute) bool) bool {
		return slices.ContainsFunc(selected, func(c *claim) bool { return step(c, route) })
	}
	switch {
	case len(selected) == 0:
		return "NoMatchingParent"
	case !reaches(o.allowsRoutes):
		return "NotAllowedByListeners"
	case !o.hasSupportedHostname(route):
		return "UnsupportedValue"
	case !reaches(o.intersects):
		return "NoMatchingListenerHostname"
	case !reaches(o.permits):
		return "HostnameNotPermitted"
	case !reaches(o.admits):
		return "RouteKindConflict"
	case !o.isPartlySupported(route, admitting...):
		return "UnsupportedValue"
	default:
		return "Accepted"
	}
}

// attachedRoutes counts the routes attached to a listener.
func (o *oracle) attachedRoutes(c *claim) (n int32) {
	for _, route := range o.routes {
		if slices.ContainsFunc(route.parentRefs, func(ref gatewayv1.ParentReference) bool {
			return slices.Contains(o.selected(ref, route.Namespace), c) && o.admits(c, route) && o.routeReason(ref, route) == "Accepted"
		}) {
			n++
		}
	}
	return n
}
