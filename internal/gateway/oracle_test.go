package gateway_test

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// oracle is an independent implementation of the specification, so that both
// implementations are unlikely to have the same bugs. It is slow and simple: it
// decides about each request, whereas Build renders rules. It shares only the types
// of the input with the package.
type oracle struct {
	snapshot *gateway.Snapshot
	claims   []*claim // in order of precedence; sets that are not allowed come last
	compiled map[string]*regexp.Regexp
}

// claim is a listener and the decision about it.
type claim struct {
	gatewayv1.Listener
	owner      gateway.Owner
	allowed    bool
	reason     string // of Accepted=False; empty when the listener is accepted
	refsReason string // of ResolvedRefs=False; empty when all references are resolved
	claims     bool   // whether it claims its port and hostname against later owners
}

const (
	answerNotFound = "http_status:404"
	answerError    = "http_status:500"
)

func newOracle(s *gateway.Snapshot) *oracle {
	o := &oracle{snapshot: s, compiled: map[string]*regexp.Regexp{}}
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
		if !allowed {
			c.reason = "Invalid"
		}
		c.refsReason = o.unresolved(c)
		claims = append(claims, c)
	}
	return claims
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

// resolveClaims resolves the conflicts of each owner in order of precedence: first
// with earlier owners, then between the listeners of the owner.
func resolveClaims(owners [][]*claim) {
	var earlier []*claim
	for _, listeners := range owners {
		var remaining []*claim
		for _, c := range listeners {
			if c.reason = conflictReason(c, earlier); c.reason == "" {
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

// unresolved returns the reason of ResolvedRefs=False, or "". It performs each check
// for all references before the next check.
func (o *oracle) unresolved(c *claim) string {
	notSupported := func(kind gatewayv1.RouteGroupKind) bool { return !c.supported() || !isHTTPRoute(kind) }
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
	return namespace == to.Namespace || slices.ContainsFunc(o.snapshot.Grants, func(grant *gatewayv1beta1.ReferenceGrant) bool {
		from := func(f gatewayv1.ReferenceGrantFrom) bool {
			return f.Group == gatewayv1.GroupName && string(f.Kind) == kind && string(f.Namespace) == namespace
		}
		target := func(t gatewayv1.ReferenceGrantTo) bool {
			return t.Group == "" && string(t.Kind) == toKind && (t.Name == nil || string(*t.Name) == to.Name)
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

func isHTTPRoute(kind gatewayv1.RouteGroupKind) bool {
	return (kind.Group == nil || *kind.Group == gatewayv1.GroupName) && kind.Kind == "HTTPRoute"
}

// serves reports whether the listener is accepted and all references are resolved.
// Only such listeners contribute routes to their group.
func (c *claim) serves() bool { return c.reason == "" && c.resolved() }

// accepted reports whether the Gateway is accepted: it requests no address, and one
// of its own listeners is accepted, or it has no listeners.
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

// answer returns the service that answers a request. The host must be in lower case,
// and the path decoded.
func (o *oracle) answer(host, path string) string {
	group, found := o.groupOf(host)
	if !found {
		return answerNotFound
	}
	var best *candidate
	for _, route := range o.snapshot.HTTPRoutes {
		if !o.isInGroup(route, group) {
			continue
		}
		for _, c := range o.candidates(route, host, path) {
			if best == nil || c.before(best) {
				best = c
			}
		}
	}
	if best == nil {
		return answerNotFound
	}
	return o.action(best.route.Spec.Rules[best.rule], best.route.Namespace)
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

// isInGroup reports whether a served listener with the hostname admits the route.
func (o *oracle) isInGroup(route *gatewayv1.HTTPRoute, hostname string) bool {
	return slices.ContainsFunc(route.Spec.ParentRefs, func(ref gatewayv1.ParentReference) bool {
		return slices.ContainsFunc(o.selected(ref, route.Namespace), func(c *claim) bool {
			return c.serves() && c.hostname() == hostname && o.admits(c, route)
		})
	})
}

// candidate is a match of a route's rule that matches the request.
type candidate struct {
	route       *gatewayv1.HTTPRoute
	hostname    int // the specificity of the hostname in the route
	kind        int // of the path: Exact before RegularExpression before PathPrefix
	length      int // of a path prefix
	rule, match int
}

func (c *candidate) before(other *candidate) bool {
	return cmp.Or(
		-cmp.Compare(c.hostname, other.hostname),
		cmp.Compare(c.kind, other.kind),
		-cmp.Compare(c.length, other.length),
		byAge(c.route.CreationTimestamp, other.route.CreationTimestamp),
		strings.Compare(c.route.Namespace+"/"+c.route.Name, other.route.Namespace+"/"+other.route.Name),
		cmp.Compare(c.rule, other.rule),
		cmp.Compare(c.match, other.match),
	) < 0
}

func (o *oracle) candidates(route *gatewayv1.HTTPRoute, host, path string) []*candidate {
	hostname := -1
	for _, written := range writtenHostnames(route) {
		if hostMatches(written, host) {
			hostname = max(hostname, specificity(written))
		}
	}
	if hostname < 0 {
		return nil
	}
	var found []*candidate
	for i, rule := range route.Spec.Rules {
		for j, match := range matchesOf(rule) {
			if kind, length, ok := o.pathMatches(match, path); ok && isMatchSupported(match) {
				found = append(found, &candidate{route, hostname, kind, length, i, j})
			}
		}
	}
	return found
}

func writtenHostnames(route *gatewayv1.HTTPRoute) []string {
	if len(route.Spec.Hostnames) == 0 {
		return []string{""}
	}
	var written []string
	for _, hostname := range route.Spec.Hostnames {
		written = append(written, string(hostname))
	}
	return written
}

func matchesOf(rule gatewayv1.HTTPRouteRule) []gatewayv1.HTTPRouteMatch {
	if len(rule.Matches) == 0 {
		return []gatewayv1.HTTPRouteMatch{{}}
	}
	return rule.Matches
}

func pathOf(match gatewayv1.HTTPRouteMatch) (gatewayv1.PathMatchType, string) {
	kind, value := gatewayv1.PathMatchPathPrefix, "/"
	if match.Path != nil && match.Path.Type != nil {
		kind = *match.Path.Type
	}
	if match.Path != nil && match.Path.Value != nil {
		value = *match.Path.Value
	}
	return kind, value
}

// pathMatches compares a match with the decoded path. A prefix consists of whole
// path elements, and its trailing slash is ignored.
func (o *oracle) pathMatches(match gatewayv1.HTTPRouteMatch, path string) (kind, length int, ok bool) {
	pathType, value := pathOf(match)
	if pathType == gatewayv1.PathMatchRegularExpression {
		return 1, 0, o.matchesWhole(value, path)
	}
	literal, _ := url.PathUnescape(value)
	if pathType == gatewayv1.PathMatchExact {
		return 0, 0, literal == path
	}
	prefix := strings.TrimSuffix(literal, "/")
	return 2, len(prefix), path == prefix || strings.HasPrefix(path, prefix+"/")
}

// matchesWhole reports whether the expression matches the whole path. It uses the
// longest match, because the first alternative that matches can be too short.
func (o *oracle) matchesWhole(expression, path string) bool {
	compiled, known := o.compiled[expression]
	if !known {
		compiled, _ = regexp.Compile(expression) // nil when it does not compile
		o.compiled[expression] = compiled
	}
	if compiled == nil {
		return false
	}
	compiled.Longest()
	location := compiled.FindStringIndex(path)
	return location != nil && location[0] == 0 && location[1] == len(path)
}

// isMatchSupported reports whether an ingress rule can express the match: it has
// only a path, which is a valid expression or valid UTF-8.
func isMatchSupported(match gatewayv1.HTTPRouteMatch) bool {
	pathType, value := pathOf(match)
	if len(match.Headers) > 0 || len(match.QueryParams) > 0 || match.Method != nil {
		return false
	}
	if pathType == gatewayv1.PathMatchRegularExpression {
		_, err := regexp.Compile(value)
		return err == nil
	}
	literal, err := url.PathUnescape(value)
	return err == nil && utf8.ValidString(literal)
}

// action returns the service that answers for a rule. The rule answers 500 when its
// action is not supported, or when it has no backend that resolves.
func (o *oracle) action(rule gatewayv1.HTTPRouteRule, namespace string) string {
	weighted := weightedBackends(rule)
	if !isActionSupported(rule) || len(weighted) != 1 {
		return answerError
	}
	service, ok := o.backend(weighted[0], namespace)
	if !ok {
		return answerError
	}
	return service
}

func weightedBackends(rule gatewayv1.HTTPRouteRule) []gatewayv1.HTTPBackendRef {
	return slices.DeleteFunc(slices.Clone(rule.BackendRefs), func(ref gatewayv1.HTTPBackendRef) bool {
		return ref.Weight != nil && *ref.Weight == 0
	})
}

// isActionSupported reports whether the rule only sends requests to one backend.
func isActionSupported(rule gatewayv1.HTTPRouteRule) bool {
	weighted := weightedBackends(rule)
	return len(rule.Filters) == 0 && rule.Timeouts == nil && rule.Retry == nil && rule.SessionPersistence == nil && len(weighted) <= 1 &&
		!slices.ContainsFunc(weighted, func(ref gatewayv1.HTTPBackendRef) bool { return len(ref.Filters) > 0 })
}

// backend returns the URL of the service, and false when it does not resolve.
func (o *oracle) backend(ref gatewayv1.HTTPBackendRef, namespace string) (string, bool) {
	if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Service" {
		return "", false
	}
	name := types.NamespacedName{Namespace: namespace, Name: string(ref.Name)}
	if ref.Namespace != nil {
		name.Namespace = string(*ref.Namespace)
	}
	if !o.granted("HTTPRoute", namespace, "Service", name) {
		return "", false
	}
	service := o.snapshot.Services[name]
	if service == nil || service.Spec.Type == corev1.ServiceTypeExternalName || ref.Port == nil {
		return "", false
	}
	for _, port := range service.Spec.Ports {
		if port.Port == *ref.Port {
			return urlOf(service, port)
		}
	}
	return "", false
}

func urlOf(service *corev1.Service, port corev1.ServicePort) (string, bool) {
	schemes := map[string]string{"": "http", "http": "http", "kubernetes.io/ws": "http", "https": "https", "kubernetes.io/wss": "https"}
	number, protocol := port.Port, ""
	if port.AppProtocol != nil {
		protocol = *port.AppProtocol
	}
	scheme, reachable := schemes[protocol]
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		reachable = reachable && port.TargetPort.Type == intstr.Int // a named port requires EndpointSlices
		number = port.TargetPort.IntVal
	}
	return fmt.Sprintf("%s://%s.%s.svc.%s:%d", scheme, service.Name, service.Namespace, randomOptions.ClusterDomain, number), reachable
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

// allowsRoutes reports whether the allowedRoutes of the listener admit the route.
func (o *oracle) allowsRoutes(c *claim, route *gatewayv1.HTTPRoute) bool {
	if !c.supported() || len(c.kinds()) > 0 && !slices.ContainsFunc(c.kinds(), isHTTPRoute) {
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

func (o *oracle) admits(c *claim, route *gatewayv1.HTTPRoute) bool {
	return o.allowsRoutes(c, route) && slices.ContainsFunc(writtenHostnames(route), func(written string) bool {
		return hostnamesIntersect(c.hostname(), written)
	})
}

// routeReason returns the reason of the Accepted condition for a parentRef.
func (o *oracle) routeReason(ref gatewayv1.ParentReference, route *gatewayv1.HTTPRoute) string {
	selected := o.selected(ref, route.Namespace)
	allowing := slices.DeleteFunc(slices.Clone(selected), func(c *claim) bool { return !o.allowsRoutes(c, route) })
	admitting := slices.DeleteFunc(slices.Clone(selected), func(c *claim) bool { return !o.admits(c, route) })
	switch {
	case len(selected) == 0:
		return "NoMatchingParent"
	case len(allowing) == 0:
		return "NotAllowedByListeners"
	case len(admitting) == 0:
		return "NoMatchingListenerHostname"
	case !slices.ContainsFunc(route.Spec.Rules, isRuleSupported):
		return "UnsupportedValue"
	default:
		return "Accepted"
	}
}

// isRuleSupported reports whether a tunnel serves the rule as written.
func isRuleSupported(rule gatewayv1.HTTPRouteRule) bool {
	return isActionSupported(rule) && !slices.ContainsFunc(matchesOf(rule), func(match gatewayv1.HTTPRouteMatch) bool { return !isMatchSupported(match) })
}

// attachedRoutes returns the number of routes attached to a listener.
func (o *oracle) attachedRoutes(c *claim) (n int32) {
	for _, route := range o.snapshot.HTTPRoutes {
		if slices.ContainsFunc(route.Spec.ParentRefs, func(ref gatewayv1.ParentReference) bool {
			return slices.Contains(o.selected(ref, route.Namespace), c) && o.admits(c, route) && o.routeReason(ref, route) == "Accepted"
		}) {
			n++
		}
	}
	return n
}
