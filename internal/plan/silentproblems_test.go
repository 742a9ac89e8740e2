package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// expectedToFail runs a check that fails because of a known defect, and fails the test
// when the check passes.
func expectedToFail(t *testing.T, reason string, check func(testing.TB)) {
	t.Helper()
	r := &recorder{TB: t}
	if check(r); !r.failed {
		t.Errorf("the check passes although it is expected to fail: %s", reason)
	}
}

// recorder records whether a check fails.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

// wantLines checks that the output contains each line exactly once, and none of the
// unwanted texts.
func wantLines(t testing.TB, output string, lines, unwanted []string) {
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

// table returns the table of a plan.
func table(t *testing.T, p *plan.Plan) string {
	t.Helper()
	var out bytes.Buffer
	if err := p.WriteTable(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// wildcardGateway has a listener with a wildcard for the routes of every namespace.
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
	expectedToFail(t, "only --why reports it", func(tb testing.TB) {
		p := planOf(t, wildcardGateway, shopSet, webService,
			webRoute("one", `[a.example.com, c.example.com]`, webRule), webRoute("two", `["*.b.example.com"]`, webRule))
		wantLines(tb, table(t, p), []string{
			`HTTPRoute team/one: HostnameClaimed: Requests for "a.example.com" in spec.hostnames go to listener "exact" of ListenerSet shop/shop. Attach the route to that listener, or remove the hostname.`,
			`HTTPRoute team/two: HostnameClaimed: Requests for "*.b.example.com" in spec.hostnames go to listener "deep" of ListenerSet shop/shop. Attach the route to that listener, or remove the hostname.`,
		}, []string{`for "c.example.com"`})
		if p.Healthy() {
			tb.Errorf("the plan is healthy")
		}
	})
}

func TestAHostnameBelowAWildcardIsNotReported(t *testing.T) {
	p := planOf(t, wildcardGateway, shopSet, webService,
		webRoute("wild", `["*.example.com"]`, webRule), webRoute("all", `[]`, webRule), webRoute("other", `["c.example.com"]`, webRule))
	wantLines(t, table(t, p), nil, []string{"HostnameClaimed"})
}

func TestARuleThatNoRequestReachesIsReported(t *testing.T) {
	expectedToFail(t, "plan leaves it out silently", func(tb testing.TB) {
		p := planOf(t, wildcardGateway, webService,
			webRoute("first", `[a.example.com]`, webRule), webRoute("second", `[a.example.com]`, webRule))
		wantLines(tb, table(t, p), []string{
			"HTTPRoute team/second rule 0: No request reaches this rule, because HTTPRoute team/first rule 0 comes before it. Change its matches or hostnames, or delete one of the rules.",
		}, []string{"HTTPRoute team/first rule 0: No request"})
	})
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
		"unsupported": {"filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x]}}], backendRefs: [{name: web, port: 80}]", "not supported: filter RequestHeaderModifier"},
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

func TestAListenerOfASetThatIsNotAllowedHasTheStateNotAllowed(t *testing.T) {
	p := planOf(t, shared, teams)
	wantLines(t, table(t, p), []string{"*                 80 HTTP  ListenerSet outside/older-but-outside  a         NotAllowed        0"}, []string{"  Invalid  "})
	wantLines(t, explanation(t, p, "x.example.org"), nil, []string{"  Invalid: "})
}
