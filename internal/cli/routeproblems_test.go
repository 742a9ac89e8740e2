package cli_test

import (
	"strings"
	"testing"
)

// problemGateway has a listener that accepts routes from every namespace, and a listener
// with an unsupported route kind.
const problemGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: cloudflare-tunnel
  allowedListeners: {namespaces: {from: Same}}
  listeners:
  - {name: wild, hostname: "*.example.com", port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: exact, hostname: a.example.com, port: 80, protocol: HTTP}
KINDS---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: team}, spec: {ports: [{port: 80}]}}
`

// problemRoute returns an HTTPRoute with the rules for the hostname.
func problemRoute(name, hostname, rules string) string {
	return "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: " + name + ", namespace: team}\n" +
		"spec:\n  parentRefs: [{name: shared, namespace: infra}]\n  hostnames: [" + hostname + "]\n  rules: " + rules + "\n"
}

// routeProblem is a manifest with a problem that no error reports.
type routeProblem struct {
	manifests string
	// healthy reports whether plan --strict succeeds.
	healthy bool
	// words are the texts in the table that the pages explain.
	words []string
}

func routeProblems() map[string]routeProblem {
	const backends, served, set = "backendRefs: [{name: web, port: 80}]", "{matches: [{path: {value: /s}}], backendRefs: [{name: web, port: 80}]}", `---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: outside, namespace: team}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners: [{name: a, hostname: set.example.com, port: 80, protocol: HTTP}]
`
	route := func(rules string) string {
		return strings.Replace(problemGateway, "KINDS", "", 1) + problemRoute("one", "b.example.com", "["+rules+"]")
	}
	kinds := func(protocol, list string) string {
		return strings.Replace(problemGateway, "KINDS", `  - {name: kinds, port: 8080, protocol: `+protocol+`, allowedRoutes: {kinds: [`+list+"]}}\n", 1)
	}
	return map[string]routeProblem{
		"claimed hostname": {manifests: strings.Replace(problemGateway, "KINDS", "", 1) + problemRoute("one", "a.example.com", "[{"+backends+"}]"), words: []string{"HostnameClaimed", "Requests for spec.hostnames go to other listeners"}},
		"shadowed rule":    {manifests: route("{"+backends+"}") + problemRoute("two", "b.example.com", "[{"+backends+"}]"), healthy: true, words: []string{"No request reaches this rule, because"}},
		"omitted match":    {manifests: route("{matches: [{path: {value: /a}}, {method: GET}], " + backends + "}, " + served), words: []string{"Dropped Rule", "is omitted, and its requests go to the next matching rule"}},
		"rule left out":    {manifests: route("{matches: [{method: GET}], " + backends + "}, " + served), words: []string{"the rule is left out because of"}},
		"filter":           {manifests: route("{filters: [{type: URLRewrite, urlRewrite: {hostname: x.example.com}}], " + backends + "}, " + served), words: []string{"the rule returns 500", "not supported by ingress rules: "}},
		"refused route":    {manifests: route("{timeouts: {request: 1s}, " + backends + "}"), words: []string{"UnsupportedValue", "The controller serves none of the route's rules as written"}},
		"no Service":       {manifests: route("{backendRefs: [{name: missing, port: 80}]}"), words: []string{"does not exist", "BackendNotFound"}},
		"no port":          {manifests: route("{backendRefs: [{name: web, port: 81}]}"), words: []string{"has no TCP port"}},
		"no grant":         {manifests: route("{backendRefs: [{name: web, namespace: infra, port: 80}]}"), words: []string{"no ReferenceGrant there permits references"}},
		"not a Service":    {manifests: route("{backendRefs: [{kind: Bucket, name: web, port: 80}]}"), words: []string{"only Services of the core group and ServiceImports"}},
		"no backends":      {manifests: route("{matches: [{path: {value: /a}}]}"), healthy: true, words: []string{"no backendRefs"}},
		"no weight":        {manifests: route("{backendRefs: [{name: web, port: 80, weight: 0}]}"), healthy: true, words: []string{"every backendRef has the weight 0"}},
		"set not allowed":  {manifests: strings.Replace(problemGateway, "KINDS", "", 1) + set, words: []string{"NotAllowed"}},
		"kind to remove":   {manifests: kinds("HTTP", "{kind: HTTPRoute}, {kind: TCPRoute}"), words: []string{"InvalidRouteKinds"}},
		"kind to replace":  {manifests: kinds("HTTP", "{kind: TCPRoute}"), words: []string{"InvalidRouteKinds"}},
		"protocol":         {manifests: kinds("TCP", "{kind: TCPRoute}"), words: []string{"UnsupportedProtocol"}},
	}
}

func TestPagesHaveTheWordsOfTheTable(t *testing.T) {
	withoutCluster(t)
	pages := readPages(t, "troubleshooting.md", "plan.md", "conditions.md")
	for name, test := range routeProblems() {
		t.Run(name, func(t *testing.T) {
			got := run(t, test.manifests, "plan", "-f", "-", "--strict")
			if want := map[bool]int{true: 0, false: 2}[test.healthy]; got.status != want {
				t.Errorf("status = %d, want %d; stderr:\n%s\nstdout:\n%s", got.status, want, got.stderr, got.stdout)
			}
			for _, words := range test.words {
				if !strings.Contains(got.stdout, words) {
					t.Errorf("the table does not contain %q:\n%s", words, got.stdout)
				}
				if !strings.Contains(pages, strings.TrimSpace(words)) {
					t.Errorf("the pages do not contain %q", words)
				}
			}
		})
	}
}

// Programs that read the JSON encoding find the problems that no condition reports on
// stderr.
func TestProblemsWithoutConditionAreWarningsBesideJSON(t *testing.T) {
	withoutCluster(t)
	for _, name := range []string{"claimed hostname", "shadowed rule"} {
		test := routeProblems()[name]
		got := run(t, test.manifests, "plan", "-f", "-", "-o", "json")
		if got.status != 0 || !strings.HasPrefix(got.stderr, "warning: HTTPRoute team/") || !strings.Contains(got.stderr, test.words[0]) {
			t.Errorf("%s: status = %d, stderr = %q, want a warning with %q", name, got.status, got.stderr, test.words[0])
		}
	}
}
