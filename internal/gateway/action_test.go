package gateway_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

var (
	web         = routing.Backend{Service: types.NamespacedName{Namespace: "platform", Name: "web"}, Port: 80, Protocol: routing.ProtocolHTTP, ServicePort: 80}
	addVersion  = &gatewayv1.HTTPHeaderFilter{Add: []gatewayv1.HTTPHeader{{Name: "x-version", Value: "2"}}, Remove: []string{"x-old"}}
	wantVersion = &routing.HeaderChanges{Add: []routing.Header{{Name: "x-version", Value: "2"}}, Remove: []string{"x-old"}}
)

func filter(f gatewayv1.HTTPRouteFilter) []gatewayv1.HTTPRouteFilter {
	return []gatewayv1.HTTPRouteFilter{f}
}

// The routing table can hold every action that a route may ask for.
func TestActionsAreTranslated(t *testing.T) {
	backends := []routing.WeightedBackend{{Backend: web, Weight: 1}}
	second, minute := time.Second, time.Minute
	for name, test := range map[string]struct {
		rule gatewayv1.HTTPRouteRule
		want routing.Action
	}{
		"one backend": {gatewayv1.HTTPRouteRule{}, routing.Action{Forward: &routing.Forward{Backends: backends}}},
		"request headers": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestHeaderModifier, RequestHeaderModifier: addVersion})},
			routing.Action{Forward: &routing.Forward{Backends: backends, Filters: &routing.Filters{Request: wantVersion}}},
		},
		"response headers": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: addVersion})},
			routing.Action{Forward: &routing.Forward{Backends: backends}, Response: wantVersion},
		},
		"a redirect": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{
				Scheme: new("https"), Hostname: new(gatewayv1.PreciseHostname("b.example.com")), Port: new(gatewayv1.PortNumber(8443)), StatusCode: new(301),
				Path: &gatewayv1.HTTPPathModifier{Type: gatewayv1.FullPathHTTPPathModifier, ReplaceFullPath: new("/new")},
			}})},
			routing.Action{Redirect: &routing.Redirect{Scheme: "https", Hostname: "b.example.com", Port: 8443, Status: 301, Path: &routing.PathChange{Value: "/new"}}},
		},
		"a redirect with the default status": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestRedirect, RequestRedirect: &gatewayv1.HTTPRequestRedirectFilter{}})},
			routing.Action{Redirect: &routing.Redirect{Status: 302}},
		},
		"a rewrite": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterURLRewrite, URLRewrite: &gatewayv1.HTTPURLRewriteFilter{
				Hostname: new(gatewayv1.PreciseHostname("b.example.com")),
				Path:     &gatewayv1.HTTPPathModifier{Type: gatewayv1.PrefixMatchHTTPPathModifier, ReplacePrefixMatch: new("/new")},
			}})},
			routing.Action{Forward: &routing.Forward{Backends: backends, Filters: &routing.Filters{
				Rewrite: routing.Rewrite{Hostname: "b.example.com", Path: &routing.PathChange{Prefix: true, Value: "/new"}},
			}}},
		},
		"a mirror": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterRequestMirror, RequestMirror: &gatewayv1.HTTPRequestMirrorFilter{
				BackendRef: webBackend()[0].BackendObjectReference, Percent: new(int32(5)),
			}})},
			routing.Action{Forward: &routing.Forward{Backends: backends, Filters: &routing.Filters{Mirrors: []routing.Mirror{{Backend: web, Numerator: 5, Denominator: 100}}}}},
		},
		"CORS": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterCORS, CORS: &gatewayv1.HTTPCORSFilter{
				AllowOrigins: []gatewayv1.CORSOrigin{"https://a.example.com"}, AllowCredentials: new(true), MaxAge: 5,
			}})},
			routing.Action{Forward: &routing.Forward{Backends: backends}, CORS: &routing.CORS{AllowOrigins: []string{"https://a.example.com"}, AllowCredentials: true, MaxAge: 5 * time.Second}},
		},
		"timeouts and retries": {
			gatewayv1.HTTPRouteRule{
				Timeouts: &gatewayv1.HTTPRouteTimeouts{Request: new(gatewayv1.Duration("1m")), BackendRequest: new(gatewayv1.Duration("1s"))},
				Retry:    &gatewayv1.HTTPRouteRetry{Codes: []gatewayv1.HTTPRouteRetryStatusCode{503}, Attempts: new(2)},
			},
			routing.Action{Forward: &routing.Forward{
				Backends: backends, Timeouts: &routing.Timeouts{Request: &minute, Backend: &second}, Retry: &routing.Retry{Codes: []int{503}, Attempts: 2},
			}},
		},
		"a retry without a limit": {
			gatewayv1.HTTPRouteRule{Retry: &gatewayv1.HTTPRouteRetry{}},
			routing.Action{Forward: &routing.Forward{Backends: backends, Retry: &routing.Retry{Attempts: 1}}},
		},
		"a session": {
			gatewayv1.HTTPRouteRule{SessionPersistence: &gatewayv1.SessionPersistence{SessionName: new("id")}},
			routing.Action{Status: 500, Problem: &routing.Problem{
				Reason: "UnsupportedValue",
				Cause: "not supported: sessionPersistence: instead, keep the session in a cookie of the application, " +
					"or with Envoy, set sessionAffinity: ClientIP in the Service",
			}},
		},
		"an extension": {
			gatewayv1.HTTPRouteRule{Filters: filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterExtensionRef, ExtensionRef: &gatewayv1.LocalObjectReference{}})},
			routing.Action{Status: 500, Problem: &routing.Problem{Reason: "UnsupportedValue", Cause: "not supported: filter ExtensionRef"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.rule.BackendRefs = webBackend()
			if diff := gocmp.Diff(test.want, onlyAction(t, test.rule)); diff != "" {
				t.Errorf("action (-want +got):\n%s", diff)
			}
		})
	}
}

// onlyAction returns the action from a route with one rule, for a data plane that can
// express everything.
func onlyAction(t *testing.T, rule gatewayv1.HTTPRouteRule) routing.Action {
	t.Helper()
	s := routesSnapshot()
	route := httpRoute(routeMeta("route", time.Hour))
	route.Spec.Rules = []gatewayv1.HTTPRouteRule{rule}
	s.HTTPRoutes = []*gatewayv1.HTTPRoute{route}
	o := randomOptions
	o.DataPlanes = routing.DataPlanes{v1alpha1.DataPlaneIngressRules: everything}
	entries := gateway.Build(s, o).Table.Groups[0].Entries
	if len(entries) != 1 {
		t.Fatalf("%d entries, want one", len(entries))
	}
	return *entries[0].Action
}

// Each backend gets its share. Requests for a backend that does not resolve get an error,
// and a backend with weight 0 gets none.
func TestWeightedBackendsAreTranslated(t *testing.T) {
	rule := gatewayv1.HTTPRouteRule{}
	for i, weight := range []int32{3, 0, 1} {
		ref := webBackend()[0]
		ref.Weight = &weight
		if i == 2 {
			ref.Name = "missing"
		}
		rule.BackendRefs = append(rule.BackendRefs, ref)
	}
	rule.BackendRefs[0].Filters = filter(gatewayv1.HTTPRouteFilter{Type: gatewayv1.HTTPRouteFilterResponseHeaderModifier, ResponseHeaderModifier: addVersion})
	want := routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{
		{Backend: web, Weight: 3, Response: wantVersion}, {Status: 500, Weight: 1},
	}}}
	if diff := gocmp.Diff(want, onlyAction(t, rule)); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
}

// A GRPCRoute can have another status for errors, and a backend without TLS where
// the data plane supports it.
func TestGRPCActionsAreTranslated(t *testing.T) {
	s := routesSnapshot()
	s.Services.Value(types.NamespacedName{Namespace: "platform", Name: "web"}).Spec.Ports = []corev1.ServicePort{{Port: 80, AppProtocol: new("kubernetes.io/h2c")}}
	backend := func(name string) []gatewayv1.GRPCBackendRef {
		return []gatewayv1.GRPCBackendRef{{BackendRef: gatewayv1.BackendRef{BackendObjectReference: gatewayv1.BackendObjectReference{
			Name: gatewayv1.ObjectName(name), Port: new(gatewayv1.PortNumber(80)),
		}}}}
	}
	s.GRPCRoutes = []*gatewayv1.GRPCRoute{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "platform", Name: "calls"},
		Spec: gatewayv1.GRPCRouteSpec{CommonRouteSpec: toShared, Rules: []gatewayv1.GRPCRouteRule{
			{BackendRefs: backend("web")}, {BackendRefs: backend("missing")},
		}},
	}}
	o := randomOptions
	o.DataPlanes = routing.DataPlanes{v1alpha1.DataPlaneIngressRules: everything}
	entries := gateway.Build(s, o).Table.Groups[0].Entries
	if b := entries[0].Action.Forward.Backends[0].Backend; b.Protocol != routing.ProtocolH2C {
		t.Errorf("the backend is %+v, want h2c", b)
	}
	want := routing.Action{Status: 503, Problem: &routing.Problem{Reason: "BackendNotFound", Cause: "Service platform/missing does not exist"}}
	if diff := gocmp.Diff(want, *entries[1].Action); diff != "" {
		t.Errorf("action (-want +got):\n%s", diff)
	}
}
