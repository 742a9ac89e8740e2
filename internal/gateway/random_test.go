package gateway_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/multicluster"
)

// The values in random clusters are few and overlap, so that conflicts are frequent. No
// hostname contains a namespace or set name, so that the tests detect a message that
// reveals such a name. The namespaces "tenant" and "tenant-b" sort differently when
// joined with a name.
var (
	randomNamespaces = []string{"infra", "tenant", "tenant-b", "outsider"}
	randomSetNames   = []string{"shared", "alpha", "bravo", "charlie", "delta", "echo"}
	randomHostnames  = []string{
		"", "example.com", "*.example.com", "a.example.com", "b.example.com", "*.a.example.com",
		"x.a.example.com", "*.x.a.example.com", "y.x.a.example.com", "*.com", "notexample.com", "example.net", "*.net",
	}
	// randomUnsupported are hostnames that the CRDs accept, but that are not supported.
	randomUnsupported = []string{"192.0.2.1", "xn--a.example.com"}
	randomPaths       = []string{
		"/", "/foo", "/foo/", "/foo/bar", "/foo/bar/", "/foobar", "/Foo", "/a.b", "/c+d", "/c%2Bd", "/c%20d", "/$x",
		"/v1(x)", "/%66oo", "/%66%6f%6f/bar", "/x%5By", "/%C3%BC", "/%FF", "/%25", "/*", "/foo~1",
	}
	randomExpressions = []string{
		"/foo", "/foo.*", "/(foo|bar)", "/foo|/bar", "^/foo$", "(?i)/FOO", "/[a-z]+/\\d+", ".*", "", `\Q/a.b`, `/a\.b`,
		"/a)|(/b", "(", "(?=/foo)", "/foo(/.*)?",
	}
	randomTimes = []metav1.Time{
		{}, metav1.NewTime(dayOne), metav1.NewTime(dayOne), metav1.NewTime(dayOne.Add(time.Second)), metav1.NewTime(dayOne.Add(time.Hour)),
	}
	randomCertificates = map[string]gateway.Certificate{
		"certificate": {NotAfter: dayOne.AddDate(100, 0, 0)},
		"expired":     {NotAfter: dayOne},
		"broken":      {Problem: "is broken"},
		"unchecked":   {Unchecked: true},
	}
	dayOne = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
)

// randomizer creates random objects, which depend only on the seed. The objects are
// valid for the CRDs, and have the defaults that the API server sets.
type randomizer struct {
	*rand.Rand
	hostnames []string
	snapshot  *gateway.Snapshot
	// everything reports whether the routes have every kind of match and action, in any
	// combination. Otherwise, they have mostly the kinds that an ingress rule can
	// express.
	everything bool
	// imports creates ServiceImports with its own random numbers. It is nil when there are none.
	imports *randomizer
}

// randomSnapshot returns a cluster with up to 30 listeners and 60 HTTPRoutes.
func randomSnapshot(seed uint64) *gateway.Snapshot { return newRandomSnapshot(seed, false) }

func newRandomSnapshot(seed uint64, everything bool) *gateway.Snapshot {
	d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 0)), everything: everything} //nolint:gosec // the test must be reproducible
	scale := pick(d, 2, 5, 12, 30)
	d.hostnames = slices.Clone(randomHostnames)
	d.Shuffle(len(d.hostnames), func(i, j int) { d.hostnames[i], d.hostnames[j] = d.hostnames[j], d.hostnames[i] })
	d.hostnames = d.hostnames[:2+d.IntN(len(d.hostnames)-1)]
	if seed%4 == 3 {
		d.hostnames = append(d.hostnames, randomUnsupported...)
	}
	d.snapshot = &gateway.Snapshot{
		Now:        dayOne.AddDate(1, 0, 0),
		Namespaces: map[string]*corev1.Namespace{},
		// Some backends are ServiceImports, and some of these have addresses that no backend may have.
		ServiceImports: map[types.NamespacedName]*multicluster.ServiceImport{}, ImportedSlices: map[types.NamespacedName][]*discoveryv1.EndpointSlice{},
		NoServiceImports: seed%8 == 5, Reserved: map[string]bool{randomReserved: true},
		// Including certificates that Build must not use without a grant.
		Certificates: map[types.NamespacedName]gateway.Certificate{},
		Tunnel:       "f70ff985-a4ef-4643-bbbc-4a0ed4fc8415",
	}
	d.imports = &randomizer{Rand: rand.New(rand.NewPCG(seed, 21)), snapshot: d.snapshot} //nolint:gosec // the test must be reproducible
	for i, name := range randomNamespaces {
		labels := map[string]string{"kubernetes.io/metadata.name": name, "odd": fmt.Sprint(i%2 == 1)}
		d.snapshot.Namespaces[name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		for secret, certificate := range randomCertificates {
			d.snapshot.Certificates[types.NamespacedName{Namespace: name, Name: secret}] = certificate
		}
	}
	for i := range d.IntN(40) {
		d.snapshot.Grants = append(d.snapshot.Grants, d.grant(i))
	}
	d.snapshot.Gateway = d.gateway(d.IntN(min(scale, 6)))
	left := scale - len(d.snapshot.Gateway.Spec.Listeners)
	for _, key := range d.setKeys() {
		entries := min(1+d.IntN(5), left)
		if left -= entries; entries > 0 {
			d.snapshot.ListenerSets = append(d.snapshot.ListenerSets, d.listenerSet(key, entries))
		}
	}
	for i := range d.IntN(2*scale + 1) {
		d.snapshot.HTTPRoutes = append(d.snapshot.HTTPRoutes, d.route(i))
	}
	if d.everything {
		d.addGRPCRoutes(pick(d, 0, scale, 2*scale))
	}
	if seed%2 == 1 {
		d.demandPermissions()
	}
	return d.snapshot
}

// demandPermissions makes the GatewayClass demand permissions, and permits random
// hostnames to the namespaces.
func (d *randomizer) demandPermissions() {
	setParametersRefs(d.snapshot)
	d.snapshot.Gateway.Spec.Infrastructure = nil
	d.snapshot.ClassConfiguration = configuration("platform", "defaults", v1alpha1.TunnelConfigurationSpec{
		Hostnames: &v1alpha1.Hostnames{From: new(v1alpha1.HostnamesFromNamespaceAnnotation)},
	})
	for _, name := range randomNamespaces {
		var entries []string
		for d.chance(80) {
			entries = append(entries, cmp.Or(pick(d, randomHostnames...), pick(d, "*", "*.EXAMPLE.com", "192.0.2.1")))
		}
		if len(entries) > 0 {
			d.snapshot.Namespaces[name].Annotations = map[string]string{"tunnelgateway.dev/hostnames": strings.Join(entries, pick(d, ",", " ", ", ", "\n"))}
		}
	}
}

func pick[T any](d *randomizer, from ...T) T { return from[d.IntN(len(from))] }

func (d *randomizer) chance(percent int) bool { return d.IntN(100) < percent }

func (d *randomizer) setKeys() []types.NamespacedName {
	var keys []types.NamespacedName
	for _, namespace := range randomNamespaces {
		for _, name := range randomSetNames {
			keys = append(keys, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	d.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys
}

func (d *randomizer) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         namespace,
		Name:              name,
		Generation:        1 + d.Int64N(9),
		CreationTimestamp: pick(d, randomTimes...),
	}
}

func (d *randomizer) gateway(listeners int) *gatewayv1.Gateway {
	g := &gatewayv1.Gateway{ObjectMeta: d.meta("infra", "shared"), Spec: gatewayv1.GatewaySpec{GatewayClassName: "cloudflare-tunnel"}}
	g.Spec.Listeners = d.listeners(listeners)
	if d.chance(95) {
		from := pick(d, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromAll, gatewayv1.NamespacesFromAll,
			gatewayv1.NamespacesFromSelector, gatewayv1.NamespacesFromSelector, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromNone)
		g.Spec.AllowedListeners = &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &from, Selector: d.selector(from)}}
	}
	if d.chance(3) {
		g.Spec.Addresses = []gatewayv1.GatewaySpecAddress{{Type: new(gatewayv1.IPAddressType), Value: "192.0.2.1"}}
	}
	return g
}

func (d *randomizer) selector(from gatewayv1.FromNamespaces) *metav1.LabelSelector {
	if from != gatewayv1.NamespacesFromSelector {
		return nil
	}
	return pick(d,
		&metav1.LabelSelector{},
		&metav1.LabelSelector{MatchLabels: map[string]string{"odd": "true"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"odd": "false"}},
		&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"outsider"}},
		}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"absent": "true"}},
	)
}

func (d *randomizer) listenerSet(key types.NamespacedName, entries int) *gatewayv1.ListenerSet {
	set := &gatewayv1.ListenerSet{ObjectMeta: d.meta(key.Namespace, key.Name)}
	if !set.CreationTimestamp.IsZero() && d.chance(20) { // a file can have times with fractions of a second
		set.CreationTimestamp = metav1.NewTime(set.CreationTimestamp.Add(500 * time.Millisecond))
	}
	set.Spec.ParentRef.Name = gatewayv1.ObjectName(d.snapshot.Gateway.Name)
	if key.Namespace != d.snapshot.Gateway.Namespace || d.chance(50) {
		set.Spec.ParentRef.Namespace = new(gatewayv1.Namespace(d.snapshot.Gateway.Namespace))
	}
	for _, listener := range d.listeners(entries) {
		set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry(listener))
	}
	return set
}

func (d *randomizer) listeners(n int) []gatewayv1.Listener {
	var listeners []gatewayv1.Listener
	for i := range n {
		listener := d.listener(fmt.Sprintf("l%d", i))
		if !slices.ContainsFunc(listeners, func(other gatewayv1.Listener) bool { return repeats(listener, other) }) {
			listeners = append(listeners, listener)
		}
	}
	return listeners
}

// repeats reports whether the CRD rejects both listeners in one object.
func repeats(a, b gatewayv1.Listener) bool {
	return a.Port == b.Port && a.Protocol == b.Protocol && hostnameOf(a) == hostnameOf(b)
}

func (d *randomizer) listener(name string) gatewayv1.Listener {
	http, https := gatewayv1.HTTPProtocolType, gatewayv1.HTTPSProtocolType
	l := gatewayv1.Listener{
		Name:          gatewayv1.SectionName(name),
		Protocol:      pick(d, http, http, http, http, http, http, https, https, https, gatewayv1.TLSProtocolType, gatewayv1.TCPProtocolType),
		AllowedRoutes: d.allowedRoutes(),
	}
	l.Port = pick[gatewayv1.PortNumber](d, 80, 80, 80, 8080)
	if l.Protocol == https {
		l.Port = 443
	}
	if d.chance(10) {
		l.Port = pick[gatewayv1.PortNumber](d, 80, 443, 8080)
	}
	if hostname := pick(d, d.hostnames...); hostname != "" && l.Protocol != gatewayv1.TCPProtocolType {
		l.Hostname = new(gatewayv1.Hostname(hostname))
	}
	if l.Protocol == gatewayv1.TLSProtocolType {
		l.TLS = &gatewayv1.ListenerTLSConfig{Mode: new(gatewayv1.TLSModePassthrough)}
	}
	if l.Protocol == https && d.chance(40) {
		l.TLS = &gatewayv1.ListenerTLSConfig{Mode: new(gatewayv1.TLSModeTerminate)}
		for d.chance(30) || len(l.TLS.CertificateRefs) == 0 {
			l.TLS.CertificateRefs = append(l.TLS.CertificateRefs, d.certificateRef())
		}
	}
	return l
}

func (d *randomizer) certificateRef() gatewayv1.SecretObjectReference {
	ref := gatewayv1.SecretObjectReference{Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Secret"))}
	ref.Name = pick[gatewayv1.ObjectName](d, "certificate", "certificate", "certificate", "certificate", "expired", "broken", "missing", "unchecked")
	if d.chance(40) {
		ref.Namespace = new(gatewayv1.Namespace(pick(d, randomNamespaces...)))
	}
	if d.chance(5) {
		*ref.Kind = "ConfigMap"
	}
	return ref
}

// grant returns a random ReferenceGrant. Most grants permit a reference in the
// cluster.
func (d *randomizer) grant(i int) *gatewayv1beta1.ReferenceGrant {
	grant := &gatewayv1beta1.ReferenceGrant{ObjectMeta: d.meta(pick(d, randomNamespaces...), fmt.Sprintf("grant-%d", i))}
	for d.chance(60) || len(grant.Spec.From) == 0 {
		grant.Spec.From = append(grant.Spec.From, gatewayv1.ReferenceGrantFrom{
			Group:     pick[gatewayv1.Group](d, gatewayv1.GroupName, gatewayv1.GroupName, gatewayv1.GroupName, ""),
			Kind:      pick[gatewayv1.Kind](d, gateway.KindGateway, gateway.KindListenerSet, gateway.KindListenerSet, gateway.KindHTTPRoute, gateway.KindHTTPRoute, gateway.KindGRPCRoute),
			Namespace: gatewayv1.Namespace(pick(d, randomNamespaces...)),
		})
	}
	for d.chance(40) || len(grant.Spec.To) == 0 {
		to := gatewayv1.ReferenceGrantTo{Kind: pick[gatewayv1.Kind](d, "Secret", "Service", "Service")}
		if d.chance(30) {
			to.Name = new(pick[gatewayv1.ObjectName](d, "certificate", "broken", "missing", "route-0-0", "route-1-0"))
		}
		if d.chance(5) {
			to.Group = "example.com"
		}
		grant.Spec.To = append(grant.Spec.To, to)
		if d.imports.chance(20) {
			to.Group, to.Kind = multicluster.GroupName, multicluster.KindServiceImport
			grant.Spec.To = append(grant.Spec.To, to)
		}
	}
	return grant
}

func (d *randomizer) allowedRoutes() *gatewayv1.AllowedRoutes {
	all := gatewayv1.NamespacesFromAll
	from := pick(d, all, all, all, gatewayv1.NamespacesFromSame, gatewayv1.NamespacesFromSelector)
	allowed := &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &from, Selector: d.selector(from)}}
	group := gatewayv1.Group(gatewayv1.GroupName)
	httpRoute := gatewayv1.RouteGroupKind{Group: &group, Kind: "HTTPRoute"}
	tcpRoute := gatewayv1.RouteGroupKind{Group: &group, Kind: "TCPRoute"}
	otherGroup := gatewayv1.RouteGroupKind{Group: new(gatewayv1.Group("example.com")), Kind: "HTTPRoute"}
	if d.everything && d.chance(5) {
		allowed.Kinds = []gatewayv1.RouteGroupKind{{Group: &group, Kind: "GRPCRoute"}}
	} else if d.chance(12) {
		allowed.Kinds = pick(d, []gatewayv1.RouteGroupKind{httpRoute}, []gatewayv1.RouteGroupKind{tcpRoute},
			[]gatewayv1.RouteGroupKind{tcpRoute, httpRoute}, []gatewayv1.RouteGroupKind{otherGroup})
	}
	return allowed
}

func (d *randomizer) service(key types.NamespacedName, change func(*corev1.Service)) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: corev1.ServiceSpec{
			Type:  corev1.ServiceTypeClusterIP,
			Ports: []corev1.ServicePort{{Name: "admin", Port: 9000}, {Name: "web", Port: 8080, TargetPort: intstr.FromInt32(3000)}},
		},
	}
	change(service)
	d.snapshot.Services.Set(key, service)
}

func (d *randomizer) route(i int) *gatewayv1.HTTPRoute {
	r := &gatewayv1.HTTPRoute{ObjectMeta: d.meta(pick(d, randomNamespaces...), fmt.Sprintf("route-%d", i))}
	r.Spec.CommonRouteSpec, r.Spec.Hostnames = d.parents(), d.routeHostnames()
	for rule := range 1 + d.IntN(3) {
		r.Spec.Rules = append(r.Spec.Rules, d.rule(types.NamespacedName{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%d", r.Name, rule)}))
	}
	return r
}

func (d *randomizer) parents() gatewayv1.CommonRouteSpec {
	var spec gatewayv1.CommonRouteSpec
	spec.ParentRefs = []gatewayv1.ParentReference{d.parentRef()}
	for d.chance(35) {
		spec.ParentRefs = append(spec.ParentRefs, d.parentRef())
	}
	if d.chance(15) { // a parent that the controller does not manage
		spec.ParentRefs = append(spec.ParentRefs, pick(d,
			gatewayv1.ParentReference{Group: new(gatewayv1.Group("")), Kind: new(gatewayv1.Kind("Service")), Name: "shared"},
			gatewayv1.ParentReference{Group: new(gatewayv1.Group(gatewayv1.GroupName)), Kind: new(gatewayv1.Kind("Gateway")), Name: "absent"},
		))
	}
	return spec
}

func (d *randomizer) routeHostnames() []gatewayv1.Hostname {
	var hostnames []gatewayv1.Hostname
	for range d.IntN(4) {
		if hostname := pick(d, d.hostnames...); hostname != "" {
			hostnames = append(hostnames, gatewayv1.Hostname(hostname))
		}
	}
	return hostnames
}

// parentRef returns a parentRef to the Gateway or to one of its ListenerSets.
func (d *randomizer) parentRef() gatewayv1.ParentReference {
	ref := gatewayv1.ParentReference{
		Group:     new(gatewayv1.Group(gatewayv1.GroupName)),
		Kind:      new(gatewayv1.Kind(gateway.KindGateway)),
		Namespace: new(gatewayv1.Namespace(d.snapshot.Gateway.Namespace)),
		Name:      gatewayv1.ObjectName(d.snapshot.Gateway.Name),
	}
	if sets := d.snapshot.ListenerSets; len(sets) > 0 && d.chance(70) {
		set := pick(d, sets...)
		*ref.Kind, *ref.Namespace, ref.Name = gateway.KindListenerSet, gatewayv1.Namespace(set.Namespace), gatewayv1.ObjectName(set.Name)
	}
	if d.chance(20) {
		ref.SectionName = new(gatewayv1.SectionName(fmt.Sprintf("l%d", d.IntN(4))))
	}
	if d.chance(15) {
		ref.Port = new(pick[gatewayv1.PortNumber](d, 80, 80, 443, 8080))
	}
	return ref
}

// rule returns a random rule with its own Service, so that the answer identifies the
// rule.
func (d *randomizer) rule(service types.NamespacedName) gatewayv1.HTTPRouteRule {
	var rule gatewayv1.HTTPRouteRule
	for d.chance(60) || len(rule.Matches) == 0 && d.chance(95) {
		rule.Matches = append(rule.Matches, d.match())
	}
	if d.everything {
		rule.Filters = d.filters(service)
	} else if d.chance(8) {
		header := &gatewayv1.HTTPHeaderFilter{Remove: []string{"X-Secret"}}
		rule.Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: header}}
	} else if d.chance(8) {
		rule.Filters = []gatewayv1.HTTPRouteFilter{{
			Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{Scheme: new("https")},
		}}
	}
	switch d.IntN(40) {
	case 0:
		rule.Timeouts = &gatewayv1.HTTPRouteTimeouts{Request: new(gatewayv1.Duration("10s"))}
	case 1:
		rule.Retry = d.retry()
	case 2:
		rule.SessionPersistence = &gatewayv1.SessionPersistence{SessionName: new("session")}
	case 3:
		return rule
	}
	if !slices.ContainsFunc(rule.Filters, isRedirect) { // the CRD rejects backends in addition to a redirect
		rule.BackendRefs = d.backends(service)
	}
	return rule
}

// retry returns a retry that Envoy supports in half of the cases.
func (d *randomizer) retry() *gatewayv1.HTTPRouteRetry {
	r := &gatewayv1.HTTPRouteRetry{Attempts: new(d.IntN(14) + 1)}
	if d.chance(50) {
		r.Codes = []gatewayv1.HTTPRouteRetryStatusCode{500, 503}
	}
	if d.chance(30) {
		r.Backoff = new(gatewayv1.Duration("1s"))
	}
	return r
}

func isRedirect(f gatewayv1.HTTPRouteFilter) bool {
	return f.Type == gatewayv1.HTTPRouteFilterRequestRedirect
}

func (d *randomizer) backends(service types.NamespacedName) []gatewayv1.HTTPBackendRef {
	refs := []gatewayv1.HTTPBackendRef{d.backend(service, 70)}
	for d.chance(15) || d.everything && d.chance(40) {
		extra := d.backend(types.NamespacedName{Namespace: service.Namespace, Name: service.Name + "x"}, 30)
		refs = append(refs, extra)
	}
	d.Shuffle(len(refs), func(i, j int) { refs[i], refs[j] = refs[j], refs[i] })
	return refs
}

func (d *randomizer) match() gatewayv1.HTTPRouteMatch {
	kind, value := gatewayv1.PathMatchPathPrefix, pick(d, "/", pick(d, randomPaths...), pick(d, randomPaths...))
	switch d.IntN(6) {
	case 0, 1:
		kind = gatewayv1.PathMatchExact
	case 2:
		kind, value = gatewayv1.PathMatchRegularExpression, pick(d, randomExpressions...)
	}
	match := gatewayv1.HTTPRouteMatch{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &value}}
	if d.everything {
		return d.extendMatch(match)
	}
	switch d.IntN(30) {
	case 0:
		match.Headers = []gatewayv1.HTTPHeaderMatch{{Type: new(gatewayv1.HeaderMatchExact), Name: "version", Value: "2"}}
	case 1:
		match.QueryParams = []gatewayv1.HTTPQueryParamMatch{{Type: new(gatewayv1.QueryParamMatchExact), Name: "debug", Value: "1"}}
	case 2:
		match.Method = new(gatewayv1.HTTPMethodPost)
	}
	return match
}

// backend returns a reference to the Service, or to a ServiceImport with its name. healthy is how many percent of the
// references name a regular Service.
func (d *randomizer) backend(key types.NamespacedName, healthy int) gatewayv1.HTTPBackendRef {
	ref := d.serviceRef(key, healthy)
	if d.imports != nil && d.imports.chance(10) {
		return d.imports.importRef(ref, key)
	}
	return ref
}

func (d *randomizer) serviceRef(key types.NamespacedName, healthy int) gatewayv1.HTTPBackendRef {
	var ref gatewayv1.HTTPBackendRef
	ref.Group, ref.Kind = new(gatewayv1.Group("")), new(gatewayv1.Kind("Service"))
	ref.Name, ref.Port, ref.Weight = gatewayv1.ObjectName(key.Name), new(gatewayv1.PortNumber(8080)), new(int32(1))
	if d.everything {
		ref.Weight = new(pick[int32](d, 1, 1, 2, 50, 0))
	}
	if d.chance(healthy) {
		d.service(key, func(*corev1.Service) {})
		return ref
	}
	switch d.IntN(8) {
	case 0: // missing
		return ref
	case 1:
		*ref.Port = 8081
	case 2:
		ref.Namespace = new(gatewayv1.Namespace(pick(d, randomNamespaces...)))
		key.Namespace = string(*ref.Namespace)
	case 3:
		*ref.Kind = "ConfigMap"
	case 4:
		ref.Filters = []gatewayv1.HTTPRouteFilter{{
			Type:            gatewayv1.HTTPRouteFilterRequestRedirect,
			RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{StatusCode: new(302)},
		}}
	case 5, 6:
		*ref.Weight = 0
	}
	if d.chance(20) {
		*ref.Weight = 0
	}
	d.service(key, d.specialService)
	return ref
}

// specialService changes the type or a port of a Service.
func (d *randomizer) specialService(service *corev1.Service) {
	web := &service.Spec.Ports[1]
	switch d.IntN(8) {
	case 0:
		service.Spec.Type, service.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.org"
	case 1:
		service.Spec.ClusterIP = corev1.ClusterIPNone
	case 2:
		service.Spec.ClusterIP, web.TargetPort = corev1.ClusterIPNone, intstr.FromString("web")
	case 3:
		web.AppProtocol = new("kubernetes.io/h2c")
	case 4:
		web.AppProtocol = new(pick(d, "https", "kubernetes.io/wss"))
	case 5:
		web.AppProtocol = new(pick(d, "http", "kubernetes.io/ws"))
	}
}
