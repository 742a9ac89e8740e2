package ingress_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
)

// forward returns an entry that sends requests for the hostname and the path prefix to
// the Service.
func forward(kind, hostname, prefix, service string, protocol routing.Protocol) routing.Entry {
	backend := routing.Backend{Service: types.NamespacedName{Namespace: "shop", Name: service}, Port: 80, Protocol: protocol}
	return routing.Entry{
		Hostname: hostname, Match: &routing.Match{Path: routing.Path{Value: prefix}},
		Action: &routing.Action{Forward: &routing.Forward{Backends: []routing.WeightedBackend{{Backend: backend, Weight: 1}}}},
		Source: routing.Source{Route: &routing.Route{Kind: kind}},
	}
}

func httpEntry(hostname, prefix, service string) routing.Entry {
	return forward(routing.KindHTTPRoute, hostname, prefix, service, routing.ProtocolHTTP)
}

func failure(hostname, prefix string) routing.Entry {
	e := httpEntry(hostname, prefix, "")
	e.Action = &routing.Action{Status: 500}
	return e
}

const (
	cart  = "http://cart.shop.svc.cluster.local:80"
	pages = "http://pages.shop.svc.cluster.local:80"
)

func TestConfigurationRendersATable(t *testing.T) {
	protected := provider.OriginRequest{Access: &provider.AccessSettings{Required: true, TeamName: "one", AUDTag: []string{"a"}}}
	access, closed := &routing.Requirement{TeamName: "one", AUDTags: []string{"a"}}, &routing.Requirement{Closed: true}
	grpc := forward(routing.KindGRPCRoute, "a.example.com", "", "calls", routing.ProtocolHTTPS)
	for name, test := range map[string]struct {
		groups []routing.Group
		access routing.Access
		want   []provider.IngressRule
	}{
		"a group without a wider group has no 404 rule": {
			[]routing.Group{{Hostname: "a.example.com", Entries: []*routing.Entry{new(httpEntry("a.example.com", "/cart", "cart"))}}},
			nil,
			[]provider.IngressRule{{Hostname: "a.example.com", Path: "^/cart(/|$)", Service: cart}, {Service: "http_status:404"}},
		},
		"a group ends with a 404 rule before a wider group": {
			[]routing.Group{
				{Hostname: "a.example.com", Entries: []*routing.Entry{new(httpEntry("a.example.com", "/cart", "cart"))}},
				{Hostname: "b.example.com"},
				{Hostname: "*.example.com", Entries: []*routing.Entry{new(httpEntry("*.example.com", "", "pages"))}},
			},
			nil,
			[]provider.IngressRule{
				{Hostname: "a.example.com", Path: "^/cart(/|$)", Service: cart}, {Hostname: "a.example.com", Service: "http_status:404"},
				{Hostname: "b.example.com", Service: "http_status:404"},
				{Hostname: "*.example.com", Service: pages}, {Service: "http_status:404"},
			},
		},
		"a group that serves every request has no 404 rule": {
			[]routing.Group{
				{Hostname: "a.example.com", Entries: []*routing.Entry{new(httpEntry("a.example.com", "", "cart"))}},
				{Entries: []*routing.Entry{new(httpEntry("", "", "pages"))}},
			},
			nil,
			[]provider.IngressRule{{Hostname: "a.example.com", Service: cart}, {Service: pages}},
		},
		"a rule that no request can reach is omitted": {
			[]routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{
				new(httpEntry("a.example.com", "/cart", "cart")), new(failure("a.example.com", "/cart")), new(httpEntry("*.example.com", "", "pages")), new(httpEntry("a.example.com", "", "cart")), new(httpEntry("*.example.com", "/cart", "cart")),
			}}},
			nil,
			[]provider.IngressRule{
				{Hostname: "a.example.com", Path: "^/cart(/|$)", Service: cart}, {Hostname: "*.example.com", Service: pages}, {Service: "http_status:404"},
			},
		},
		"each kind of path has its expression": {
			[]routing.Group{{Hostname: "a.example.com", Entries: []*routing.Entry{
				new(withPath(httpEntry("a.example.com", "", "cart"), routing.PathExact, "/a.b")), new(withPath(httpEntry("a.example.com", "", "cart"), routing.PathExpression, "(?:/x|/y)")),
			}}},
			nil,
			[]provider.IngressRule{
				{Hostname: "a.example.com", Path: `^/a\.b$`, Service: cart}, {Hostname: "a.example.com", Path: "^(?:/x|/y)$", Service: cart}, {Service: "http_status:404"},
			},
		},
		"every rule of an entry requires the access of its hostname": {
			[]routing.Group{
				{Hostname: "a.example.com", Entries: []*routing.Entry{new(httpEntry("a.example.com", "/cart", "cart")), new(failure("a.example.com", "/pay"))}},
				{Entries: []*routing.Entry{new(httpEntry("b.example.com", "/cart", "cart")), new(httpEntry("", "", "pages"))}},
			},
			routing.Access{"a.example.com": access},
			[]provider.IngressRule{
				{Hostname: "a.example.com", Path: "^/cart(/|$)", Service: cart, OriginRequest: protected},
				{Hostname: "a.example.com", Path: "^/pay(/|$)", Service: "http_status:500", OriginRequest: protected},
				{Hostname: "a.example.com", Service: "http_status:404"},
				{Hostname: "b.example.com", Path: "^/cart(/|$)", Service: cart}, {Service: pages},
			},
		},
		"a GRPCRoute uses HTTP/2": {
			[]routing.Group{{Hostname: "a.example.com", Entries: []*routing.Entry{new(grpc)}}},
			nil,
			[]provider.IngressRule{
				{Hostname: "a.example.com", Service: "https://calls.shop.svc.cluster.local:80", OriginRequest: provider.OriginRequest{HTTP2Origin: new(true)}},
				{Service: "http_status:404"},
			},
		},
		"a protected hostname has a rule for each entry above it": {
			[]routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{
				new(httpEntry("admin.example.com", "/own", "cart")), new(httpEntry("z.example.com", "", "cart")),
				new(httpEntry("*.example.com", "/own", "pages")), new(httpEntry("*.example.com", "/pages", "pages")), new(failure("*.example.com", "/pay")),
			}}},
			routing.Access{"admin.example.com": access},
			[]provider.IngressRule{
				{Hostname: "admin.example.com", Path: "^/own(/|$)", Service: cart, OriginRequest: protected},
				{Hostname: "admin.example.com", Path: "^/pages(/|$)", Service: pages, OriginRequest: protected},
				{Hostname: "admin.example.com", Path: "^/pay(/|$)", Service: "http_status:500", OriginRequest: protected},
				{Hostname: "z.example.com", Service: cart},
				{Hostname: "*.example.com", Path: "^/own(/|$)", Service: pages}, {Hostname: "*.example.com", Path: "^/pages(/|$)", Service: pages},
				{Hostname: "*.example.com", Path: "^/pay(/|$)", Service: "http_status:500"}, {Service: "http_status:404"},
			},
		},
		"a hostname without a route has rules before the wildcard": {
			[]routing.Group{{Entries: []*routing.Entry{new(httpEntry("*.example.com", "/cart", "cart")), new(httpEntry("", "", "pages"))}}},
			routing.Access{"*.admin.example.com": access},
			[]provider.IngressRule{
				{Hostname: "*.admin.example.com", Path: "^/cart(/|$)", Service: cart, OriginRequest: protected},
				{Hostname: "*.admin.example.com", Service: pages, OriginRequest: protected},
				{Hostname: "*.example.com", Path: "^/cart(/|$)", Service: cart}, {Service: pages},
			},
		},
		"an exempt hostname below a protected wildcard has rules without access": {
			[]routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{new(httpEntry("*.example.com", "", "pages"))}}},
			routing.Access{"*.example.com": access, "open.example.com": nil},
			[]provider.IngressRule{
				{Hostname: "open.example.com", Service: pages}, {Hostname: "*.example.com", Service: pages, OriginRequest: protected}, {Service: "http_status:404"},
			},
		},
		"a hostname protected like a wider hostname needs no rules": {
			[]routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{new(httpEntry("*.example.com", "", "pages"))}}},
			routing.Access{"": access, "open.example.com": access},
			[]provider.IngressRule{{Hostname: "*.example.com", Service: pages, OriginRequest: protected}, {Service: "http_status:404"}},
		},
		"a closed hostname has one rule instead of all others": {
			[]routing.Group{
				{Hostname: "a.example.com", Entries: []*routing.Entry{new(httpEntry("a.example.com", "/cart", "cart")), new(httpEntry("a.example.com", "", "pages"))}},
				{Hostname: "*.example.com", Entries: []*routing.Entry{new(httpEntry("*.example.com", "", "pages"))}},
			},
			routing.Access{"a.example.com": closed},
			[]provider.IngressRule{
				{Hostname: "a.example.com", Service: "http_status:403"}, {Hostname: "*.example.com", Service: pages}, {Service: "http_status:404"},
			},
		},
		"a closed hostname without a route has a rule": {
			[]routing.Group{{Hostname: "a.example.com"}},
			routing.Access{"a.example.com": closed},
			[]provider.IngressRule{{Hostname: "a.example.com", Service: "http_status:403"}, {Service: "http_status:404"}},
		},
		"a closed hostname below a wildcard has a rule before its rules": {
			[]routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{new(httpEntry("a.example.com", "/cart", "cart")), new(httpEntry("*.example.com", "", "pages"))}}},
			routing.Access{"a.example.com": closed, "b.example.com": closed},
			[]provider.IngressRule{
				{Hostname: "a.example.com", Service: "http_status:403"}, {Hostname: "b.example.com", Service: "http_status:403"},
				{Hostname: "*.example.com", Service: pages}, {Service: "http_status:404"},
			},
		},
		"narrower hostnames below a closed wildcard keep their decision": {
			[]routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{
				new(httpEntry("a.example.com", "", "cart")), new(httpEntry("c.example.com", "", "cart")), new(httpEntry("*.example.com", "", "pages")),
			}}},
			routing.Access{"*.example.com": closed, "a.example.com": nil, "b.example.com": access},
			[]provider.IngressRule{
				{Hostname: "a.example.com", Service: cart}, {Hostname: "b.example.com", Service: pages, OriginRequest: protected},
				{Hostname: "c.example.com", Service: "http_status:403"}, {Hostname: "*.example.com", Service: "http_status:403"}, {Service: "http_status:404"},
			},
		},
		"hosts without a hostname are closed by the last rule": {
			[]routing.Group{{Hostname: "a.example.com", Entries: []*routing.Entry{new(httpEntry("a.example.com", "", "cart"))}}, {Entries: []*routing.Entry{new(httpEntry("", "", "pages"))}}},
			routing.Access{"": closed, "a.example.com": access},
			[]provider.IngressRule{{Hostname: "a.example.com", Service: cart, OriginRequest: protected}, {Service: "http_status:403"}},
		},
		"a protected hostname that no entry covers has no rule": {
			[]routing.Group{{Hostname: "*.example.com", Entries: []*routing.Entry{new(httpEntry("z.example.com", "", "pages"))}}},
			routing.Access{"admin.example.com": access},
			[]provider.IngressRule{{Hostname: "z.example.com", Service: pages}, {Service: "http_status:404"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ingress.Render(v1alpha1.DataPlaneIngressRules, &routing.Table{Groups: test.groups, Access: test.access, ClusterDomain: "cluster.local"}, nil).Configuration()
			if diff := cmp.Diff(test.want, got.Ingress); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
		})
	}
}

func withPath(e routing.Entry, kind routing.PathKind, value string) routing.Entry {
	e.Match = &routing.Match{Path: routing.Path{Kind: kind, Value: value}}
	return e
}

func TestConfigurationOfARejectedGatewayDoesNotExist(t *testing.T) {
	if c := ingress.Render(v1alpha1.DataPlaneIngressRules, nil, nil).Configuration(); c != nil {
		t.Errorf("got the configuration %+v, want none", c)
	}
}
