package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// wantLines checks that the output contains each line exactly once, and none of the
// unwanted texts.
func wantLines(t *testing.T, output string, lines, unwanted []string) {
	t.Helper()
	for _, line := range lines {
		if n := strings.Count(output, line+"\n"); n != 1 {
			t.Errorf("the output contains %d times %q, want once:\n%s", n, line, output)
		}
	}
	for _, text := range unwanted {
		if strings.Contains(output, text) {
			t.Errorf("the output contains %q:\n%s", text, output)
		}
	}
}

func table(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wildcardGateway has a listener with a wildcard for routes from every namespace.
const wildcardGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: All}}
  listeners:
  - {name: wild, hostname: "*.example.com", port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
`

// shopSet claims two hostnames below the wildcard, and a conflicting hostname.
const shopSet = `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: shop, namespace: shop}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners:
  - {name: exact, hostname: a.example.com, port: 80, protocol: HTTP}
  - {name: deep, hostname: "*.b.example.com", port: 80, protocol: HTTP}
`

// webRoute returns a route in the namespace team with the hostnames and rules.
func webRoute(name, hostnames, rules string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: " + name + ", namespace: team}\n" +
		"spec:\n  parentRefs: [{name: shared, namespace: infra}]\n  hostnames: " + hostnames + "\n  rules: " + rules + "\n"
}

const (
	webService = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}"
	webRule    = "[{backendRefs: [{name: web, port: 80}]}]"
)

func TestAHostnameThatAnotherListenerClaimsIsReported(t *testing.T) {
	p := planOf(t, wildcardGateway, shopSet, webService,
		webRoute("one", `[a.example.com, c.example.com]`, webRule), webRoute("two", `["*.b.example.com"]`, webRule))
	wantLines(t, table(t, p), []string{
		`HTTPRoute team/one: HostnameClaimed: Requests for spec.hostnames go to other listeners: "a.example.com" to listener "exact" of ListenerSet shop/shop. Attach the route to the listener with the hostname, or remove the hostname.`,
		`HTTPRoute team/two: HostnameClaimed: Requests for spec.hostnames go to other listeners: "*.b.example.com" to listener "deep" of ListenerSet shop/shop. Attach the route to the listener with the hostname, or remove the hostname.`,
	}, []string{`"c.example.com" to`})
	if p.Healthy() {
		t.Errorf("the plan is healthy")
	}
}

func TestAHostnameBelowAWildcardIsNotReported(t *testing.T) {
	p := planOf(t, wildcardGateway, shopSet, webService,
		webRoute("wild", `["*.example.com"]`, webRule), webRoute("all", `[]`, webRule), webRoute("other", `["c.example.com"]`, webRule))
	wantLines(t, table(t, p), nil, []string{"HostnameClaimed"})
}

// Two routes with the same matches are usual while one replaces the other, so the plan
// is healthy.
func TestARuleThatNoRequestReachesIsReported(t *testing.T) {
	const both = `[{matches: [{path: {value: /a}}], backendRefs: [{name: web, port: 80}]}, {matches: [{path: {value: /b}}, {path: {value: /b/}}], backendRefs: [{name: web, port: 80}]}]`
	p := planOf(t, wildcardGateway, webService,
		webRoute("a", `[a.example.com]`, both), webRoute("b", `[b.example.com]`, both),
		webRoute("c", `[a.example.com, b.example.com]`, both), webRoute("d", `[a.example.com, d.example.com]`, both))
	const advice = " Change its matches or hostnames, or delete one of the rules."
	wantLines(t, table(t, p), []string{
		"HTTPRoute team/c rule 0: No request reaches this rule, because HTTPRoute team/a rule 0, HTTPRoute team/b rule 0 come before it." + advice,
		"HTTPRoute team/c rule 1: No request reaches this rule, because HTTPRoute team/a rule 1, HTTPRoute team/b rule 1 come before it." + advice,
	}, []string{"HTTPRoute team/a rule 0: ", "HTTPRoute team/a rule 1: ", "HTTPRoute team/b rule 0: ", "HTTPRoute team/d rule 0: "})
	if !p.Healthy() {
		t.Errorf("the plan is not healthy")
	}
}

func TestARefusedRouteIsReportedOnce(t *testing.T) {
	p := planOf(t, wildcardGateway, webService, webRoute("refused", `[a.example.com]`, "[{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x]}}], backendRefs: [{name: web, port: 80}]}]"))
	_, problems, _ := strings.Cut(table(t, p), "Limits: ")
	if n := strings.Count(problems, "RequestHeaderModifier"); n != 1 {
		t.Errorf("the filter is reported %d times, want once:\n%s", n, problems)
	}
}

func TestARowThatAnswers500GivesTheReason(t *testing.T) {
	for name, test := range map[string]struct{ rule, want string }{
		"unsupported": {"filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x]}}], backendRefs: [{name: web, port: 80}]", "not supported by ingress rules: filter RequestHeaderModifier"},
		"no backends": {"matches: [{path: {value: /}}]", "no backendRefs"},
		"weights":     {"backendRefs: [{name: web, port: 80, weight: 0}]", "every backendRef has the weight 0"},
		"Service":     {"backendRefs: [{name: missing, port: 80}]", "Service team/missing does not exist"},
		"port":        {"backendRefs: [{name: web, port: 81}]", "Service team/web has no TCP port 81"},
		"grant":       {"backendRefs: [{name: web, namespace: infra, port: 80}]", `Service infra/web is in another namespace, and no ReferenceGrant there permits references from HTTPRoutes in namespace "team"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, wildcardGateway, webService, webRoute("failing", `[a.example.com]`, "[{"+test.rule+"}]"))
			wantLines(t, table(t, p), []string{"  http_status:500  HTTPRoute team/failing rule 0 (" + test.want + ")"}, nil)
		})
	}
}

func TestListenersOfARefusedSetAreNotAllowed(t *testing.T) {
	p := planOf(t, shared, teams)
	wantLines(t, table(t, p), []string{"*                 80 HTTP  ListenerSet outside/older-but-outside  a         NotAllowed        0"}, []string{"  Invalid  "})
	wantLines(t, explanation(t, p, "x.example.org"), nil, []string{"  Invalid: "})
}
