package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

func TestMissingBackendsHaveSuggestions(t *testing.T) {
	const (
		others = `
{apiVersion: v1, kind: Service, metadata: {name: api, namespace: other}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: many, namespace: other}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: many, namespace: another}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: target, namespace: team}, spec: {ports: [{port: 53, protocol: UDP}, {port: 443}, {port: 80, targetPort: 8080}]}}
`
		problem = "HTTPRoute team/one: BackendNotFound: Rule 0, backendRef 0: "
	)
	for name, test := range map[string]struct{ refs, want string }{
		"swapped letters":            {"{name: wbe, port: 80}", "Service team/wbe does not exist. Did you mean Service team/web instead of team/wbe?"},
		"another namespace":          {"{name: api, port: 80}", "Service team/api does not exist. Did you mean Service other/api instead of team/api?"},
		"several namespaces":         {"{name: many, port: 80}", "Service team/many does not exist."},
		"name that resembles none":   {"{name: database, port: 80}", "Service team/database does not exist."},
		"target port":                {"{name: target, port: 8080}", "Service team/target has no TCP port 8080. Port 80 of Service team/target leads to targetPort 8080; did you mean port 80?"},
		"port that no port leads to": {"{name: target, port: 81}", "Service team/target has no TCP port 81. Ports of Service team/target: 443, 80."},
	} {
		p := planOf(t, wildcardGateway, webService, others, webRoute("one", "[a.example.com]", "[{backendRefs: ["+test.refs+"]}]"))
		t.Run(name, func(t *testing.T) { wantLines(t, table(t, p), []string{problem + test.want}, nil) })
	}
}

// Every rule with the same mistake has the same suggestion.
func TestSuggestionsStandOnce(t *testing.T) {
	const rules = "[{backendRefs: [{name: wbe, port: 80}]}, {matches: [{path: {value: /a}}], backendRefs: [{name: wbe, port: 80}]}, {matches: [{path: {value: /b}}], backendRefs: [{name: web, port: 80}]}]"
	p := planOf(t, wildcardGateway, webService, webRoute("one", "[a.example.com]", rules))
	if n := strings.Count(table(t, p), "Did you mean"); n != 1 {
		t.Errorf("the table has %d suggestions, want 1:\n%s", n, table(t, p))
	}
	wantLines(t, explanation(t, p, "a.example.com"), []string{"  BackendNotFound: the rule returns 500 (Service team/wbe does not exist). Did you mean Service team/web instead of team/wbe?"}, nil)
	var out bytes.Buffer
	if err := p.Explain(routing.Request{Host: "a.example.com", Path: "/b"}).WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	wantLines(t, out.String(), nil, []string{"Did you mean"})
}

func TestHostnamesThatNoListenerHasAreReported(t *testing.T) {
	const exact = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  listeners:
  - {name: shop, hostname: shop.example.com, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: home, hostname: home.example.com, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
`
	for name, test := range map[string]struct {
		hostnames, want string
		strict          bool
	}{
		"all, one similar":  {"[shop.exmaple.com, www.example.org]", `"shop" (shop.example.com, port 80), "home" (home.example.com, port 80). Change spec.hostnames, or add a listener. Did you mean shop.example.com instead of shop.exmaple.com?`, false},
		"all, none similar": {"[www.example.org]", "Change spec.hostnames, or add a listener.", false},
		"one of two":        {"[home.example.com, shop.exmaple.com]", `HTTPRoute team/one: no listener of the route's parents has the hostname "shop.exmaple.com"; did you mean shop.example.com?`, false},
		"own hostname":      {"[shop.example.com, shop.exmaple.com]", `HTTPRoute team/one: no listener of the route's parents has the hostname "shop.exmaple.com"`, false},
		"none":              {"[shop.example.com, home.example.com]", "", true},
		"wildcard":          {`["*.example.com"]`, "", true},
	} {
		p := planOf(t, exact, webService, webRoute("one", test.hostnames, webRule))
		if text := table(t, p); !strings.Contains(text, test.want+"\n") {
			t.Errorf("%s: the table is\n%s\nwant %q", name, text, test.want)
		}
		if p.Healthy() != test.strict {
			t.Errorf("%s: Healthy = %t, want %t", name, p.Healthy(), test.strict)
		}
	}
}

// Another parent may serve the hostname.
func TestHostnamesThatAnotherParentMayServeAreNotReported(t *testing.T) {
	second := strings.NewReplacer("name: shared", "name: second", "*.example.com", "*.example.org").Replace(wildcardGateway)
	route := func(parents string) string {
		return strings.Replace(webRoute("one", "[a.example.com, a.example.org]", webRule), "[{name: shared, namespace: infra}]", parents, 1)
	}
	for parents, want := range map[string]int{
		"[{name: shared, namespace: infra}]":                                                       1,
		"[{name: shared, namespace: infra}, {name: second, namespace: infra}]":                     0,
		"[{name: shared, namespace: infra}, {name: mesh, kind: Service, group: ''}]":               0,
		"[{name: shared, namespace: infra}, {name: a, kind: Gateway, group: gateway.example.com}]": 0,
	} {
		p := planOf(t, wildcardGateway, second, webService, route(parents))
		if n := strings.Count(table(t, p), "no listener of the route's parents"); n != want {
			t.Errorf("%s: the table reports %d hostnames, want %d:\n%s", parents, n, want, table(t, p))
		}
	}
}
