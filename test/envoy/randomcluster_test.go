package envoy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/byname"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// The values are few and overlap, so that a hostname often has listeners with both
// protocols, and a request has several matches.
var (
	randomHostnames = []string{"", "*.example.com", "a.example.com", "a.example.com", "*.a.example.com", "b.a.example.com", "example.com"}
	randomHosts     = []string{"a.example.com", "a.example.com", "b.a.example.com", "c.b.a.example.com", "x.example.com", "example.com", "example.org"}
	randomTargets   = []string{"/", "//", "//?a=1", "/foo", "/foo/", "/foo//bar", "/%66oo/bar?a=1", "/foobar", "/x"}
	randomOrigins   = []string{"https://shop.example.org", "https://shop.example.org:443", "http://shop.example.org:80", "https://shop.example.org:8443", "https://a.shop.example.org:443"}
	allowedOrigins  = []gatewayv1.CORSOrigin{"https://shop.example.org", "https://*.shop.example.org"}
)

// randomizer creates random objects, which depend only on the seed, with the API's
// defaults.
type randomizer struct{ *rand.Rand }

func pick[T any](d randomizer, from ...T) T { return from[d.IntN(len(from))] }

func (d randomizer) chance(percent int) bool { return d.IntN(100) < percent }

// randomServices returns the Services in all clusters: three in each namespace.
func randomServices() map[types.NamespacedName]*corev1.Service {
	services := map[types.NamespacedName]*corev1.Service{}
	for i, namespace := range []string{"infra", "team"} {
		for n := range 3 {
			key := types.NamespacedName{Namespace: namespace, Name: fmt.Sprintf("%s-%d", namespace, n)}
			services[key] = &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
				Spec:       corev1.ServiceSpec{ClusterIP: fmt.Sprintf("10.97.%d.%d", i, n+1), Ports: []corev1.ServicePort{{Port: 80}}},
			}
		}
	}
	return services
}

// snapshot returns a Gateway in the namespace infra, a ListenerSet in the namespace team,
// and routes in both.
func (d randomizer) snapshot(services map[types.NamespacedName]*corev1.Service) *gateway.Snapshot {
	all := gatewayv1.NamespacesFromAll
	s := &gateway.Snapshot{
		Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), DataPlane: v1alpha1.DataPlaneEnvoy, Services: byname.From(services),
		Namespaces: map[string]*corev1.Namespace{"infra": {ObjectMeta: metav1.ObjectMeta{Name: "infra"}}, "team": {ObjectMeta: metav1.ObjectMeta{Name: "team"}}},
		Gateway: &gatewayv1.Gateway{
			ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "shared"},
			Spec: gatewayv1.GatewaySpec{
				AllowedListeners: &gatewayv1.AllowedListeners{Namespaces: &gatewayv1.ListenerNamespaces{From: &all}}, Listeners: d.listeners(2 + d.IntN(5)),
			},
		},
	}
	set := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "set"}}
	set.Spec.ParentRef = gatewayv1.ParentGatewayReference{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))}
	for _, l := range d.listeners(1 + d.IntN(3)) {
		set.Spec.Listeners = append(set.Spec.Listeners, gatewayv1.ListenerEntry(l))
	}
	s.ListenerSets = []*gatewayv1.ListenerSet{set}
	for i := range 4 + d.IntN(6) {
		s.HTTPRoutes = append(s.HTTPRoutes, d.route(i))
	}
	return s
}

// listeners returns listeners that differ in their protocol or hostname. One of them can
// be unresolved, because its certificate does not exist.
func (d randomizer) listeners(n int) []gatewayv1.Listener {
	all := gatewayv1.NamespacesFromAll
	var listeners []gatewayv1.Listener
	used := map[string]bool{}
	for i := range n {
		l := gatewayv1.Listener{
			Name: gatewayv1.SectionName(fmt.Sprintf("l%d", i)), Port: 80, Protocol: gatewayv1.HTTPProtocolType,
			AllowedRoutes: &gatewayv1.AllowedRoutes{Namespaces: &gatewayv1.RouteNamespaces{From: &all}},
		}
		if d.chance(50) {
			l.Port, l.Protocol = 443, gatewayv1.HTTPSProtocolType
			if d.chance(10) {
				l.TLS = &gatewayv1.ListenerTLSConfig{CertificateRefs: []gatewayv1.SecretObjectReference{{Name: "missing"}}}
			}
		}
		hostname := pick(d, randomHostnames...)
		if hostname != "" {
			l.Hostname = new(gatewayv1.Hostname(hostname))
		}
		if key := string(l.Protocol) + hostname; !used[key] {
			used[key] = true
			listeners = append(listeners, l)
		}
	}
	return listeners
}

func (d randomizer) route(i int) *gatewayv1.HTTPRoute {
	namespace := pick(d, "infra", "infra", "team")
	r := &gatewayv1.HTTPRoute{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("route-%d", i)}}
	ref := gatewayv1.ParentReference{Name: "shared", Namespace: new(gatewayv1.Namespace("infra"))}
	if d.chance(40) {
		ref = gatewayv1.ParentReference{Kind: new(gatewayv1.Kind(gateway.KindListenerSet)), Name: "set", Namespace: new(gatewayv1.Namespace("team"))}
	}
	if d.chance(50) {
		ref.Port = new(pick[gatewayv1.PortNumber](d, 80, 443))
	}
	r.Spec.ParentRefs = []gatewayv1.ParentReference{ref}
	for d.chance(30) {
		if hostname := gatewayv1.Hostname(pick(d, randomHostnames[1:]...)); !slices.Contains(r.Spec.Hostnames, hostname) {
			r.Spec.Hostnames = append(r.Spec.Hostnames, hostname)
		}
	}
	for range 1 + d.IntN(3) {
		r.Spec.Rules = append(r.Spec.Rules, d.rule(namespace))
	}
	return r
}

func (d randomizer) rule(namespace string) gatewayv1.HTTPRouteRule {
	kind, value := pick(d, gatewayv1.PathMatchExact, gatewayv1.PathMatchPathPrefix, gatewayv1.PathMatchPathPrefix), pick(d, "/", "/", "/foo", "/foo/bar")
	if d.chance(15) {
		// Envoy compares expressions with "//" as it is, so they match either both "/" and "//" or none.
		kind, value = gatewayv1.PathMatchRegularExpression, pick(d, "/foo.*", "/+", "/*(x|foobar)?")
	}
	rule := gatewayv1.HTTPRouteRule{Matches: []gatewayv1.HTTPRouteMatch{{Path: &gatewayv1.HTTPPathMatch{Type: &kind, Value: &value}}}}
	if d.chance(15) {
		rule.Matches[0].Headers = []gatewayv1.HTTPHeaderMatch{{Type: new(gatewayv1.HeaderMatchExact), Name: "Version", Value: "2"}}
	}
	if d.chance(45) {
		rule.Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: d.redirect()}}
		return rule
	}
	if d.chance(30) {
		rule.Filters = []gatewayv1.HTTPRouteFilter{{Type: gatewayv1.HTTPRouteFilterCORS, CORS: &gatewayv1.HTTPCORSFilter{AllowOrigins: allowedOrigins, MaxAge: 5}}}
	}
	backend := gatewayv1.HTTPBackendRef{}
	backend.Name, backend.Port = gatewayv1.ObjectName(fmt.Sprintf("%s-%d", namespace, d.IntN(3))), new(gatewayv1.PortNumber(80))
	rule.BackendRefs = []gatewayv1.HTTPBackendRef{backend}
	return rule
}

// redirect returns a redirect. Many change only the scheme to https.
func (d randomizer) redirect() *gatewayv1.HTTPRequestRedirectFilter {
	r := &gatewayv1.HTTPRequestRedirectFilter{Scheme: new("https"), StatusCode: new(301)}
	if d.chance(50) {
		return r
	}
	r.Scheme, r.Port = pick(d, nil, nil, new("https"), new("http")), pick(d, nil, new(gatewayv1.PortNumber(443)), new(gatewayv1.PortNumber(80)), new(gatewayv1.PortNumber(8443)))
	if d.chance(25) {
		r.Hostname = new(gatewayv1.PreciseHostname("to.example.com"))
	}
	return r
}

// request returns a request as a connector sends it.
func (d randomizer) request() request {
	r := request{method: "GET", host: pick(d, randomHosts...), target: pick(d, randomTargets...)}
	if d.chance(15) {
		r.host = strings.ToUpper(r.host)
	}
	if d.chance(10) {
		r.host += "."
	}
	if d.chance(25) {
		r.host += pick(d, ":8080", ":443", ":80")
	}
	if d.chance(60) {
		r.lines = append(r.lines, "X-Forwarded-Proto: "+pick(d, "http", "http", "https"))
	}
	if d.chance(30) {
		r.lines = append(r.lines, "Origin: "+pick(d, randomOrigins...))
	}
	if d.chance(20) {
		r.lines = append(r.lines, "Version: 2")
	}
	return r
}

func objectsOf(services map[types.NamespacedName]*corev1.Service) []client.Object {
	var objects []client.Object
	for _, s := range services {
		objects = append(objects, s)
	}
	return objects
}
