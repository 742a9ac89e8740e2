package plan_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// detached is a route without a parent.
const detached = `
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: detached, namespace: team}, spec: {}}
`

// listed returns the lines about a plan's mistakes.
func listed(t *testing.T, p *plan.Plan, style plan.Style) string {
	t.Helper()
	var out bytes.Buffer
	p.WriteMistakes(&out, "", style)
	return out.String()
}

// Objects without their Gateway get no status.
func TestObjectsWithoutTheirParentAreListed(t *testing.T) {
	const route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: more, namespace: team}\n" +
		"spec: {parentRefs: [{kind: ListenerSet, name: none}, {name: a, sectionName: a}, {name: a, sectionName: b}, {kind: Service, group: '', name: mesh}]}\n"
	const addContext = " is not in the manifests. Add --context to combine the manifests with a cluster.\n"
	for name, test := range map[string]struct {
		manifests []string
		want      string
		healthy   bool
	}{
		"objects of a team":             {[]string{teams}, "No Gateway uses this controller.\nHTTPRoute team/web, ListenerSet outside/older-but-outside, ListenerSet team/admitted: Gateway infra/shared" + addContext, false},
		"a route with several parents":  {[]string{route}, "No Gateway uses this controller.\nHTTPRoute team/more: ListenerSet team/none" + addContext + "HTTPRoute team/more: Gateway team/a" + addContext + "{", false},
		"no manifests":                  {nil, "No Gateway uses this controller.\n", false},
		"a Gateway of a missing class":  {[]string{strings.Replace(shared, "cloudflare-tunnel", "internal", 1), teams}, "No Gateway uses this controller. Gateway infra/shared: GatewayClass \"internal\" not found. GatewayClasses of this controller: cloudflare-tunnel.\n{", false},
		"a Gateway and a route without": {[]string{shared, route}, "\nHTTPRoute team/more: Gateway team/a" + addContext, false},
		"a Gateway":                     {[]string{shared}, "Gateway infra/shared", true},
	} {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, append(test.manifests, "{apiVersion: v1, kind: Namespace, metadata: {name: infra}}")...)
			if got := printed(t, p); !strings.Contains(got, test.want) {
				t.Errorf("the output is %q, want %q", got, test.want)
			}
			if got := p.Healthy(); got != test.healthy {
				t.Errorf("Healthy = %t, want %t", got, test.healthy)
			}
		})
	}
	source := read(t, strings.Join([]string{gatewayFor("a.example.com", ""), teams}, "---\n"), "-")
	source.Live = true
	p := buildPlan(t, source, now)
	want := "HTTPRoute team/web, ListenerSet outside/older-but-outside, ListenerSet team/admitted: Gateway infra/shared does not exist. Create it, or correct the parentRef.\n"
	if diff := cmp.Diff(want, listed(t, p, plan.Style{})); diff != "" || p.Healthy() {
		t.Errorf("with a cluster, Healthy = %t, and the mistakes differ (-want +got):\n%s", p.Healthy(), diff)
	}
}

// Objects from many teams can refer to one missing Gateway.
func TestLongListsOfObjectsAreAbbreviated(t *testing.T) {
	var routes []string
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		routes = append(routes, "{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: "+name+"}, spec: {}}")
	}
	p := planOf(t, routes...)
	for wide, want := range map[bool]string{
		false: "GRPCRoute default/a, GRPCRoute default/b, GRPCRoute default/c and 2 more: spec.parentRefs is empty",
		true:  "GRPCRoute default/c, GRPCRoute default/d, GRPCRoute default/e: spec.parentRefs is empty",
	} {
		if got := listed(t, p, plan.Style{Wide: wide}); !strings.Contains(got, want) {
			t.Errorf("wide: %t: the mistakes are %q, want %q", wide, got, want)
		}
	}
}

// --strict --gateway considers only one Gateway's objects.
func TestSelectKeepsTheMistakesOfOneGateway(t *testing.T) {
	annotated := func(kind, metadata string) string {
		return "{apiVersion: v1, kind: " + kind + ", metadata: {" + metadata + ", annotations: {tunnelgateway.dev/other: a}}}"
	}
	classes := strings.NewReplacer("{name: cloudflare-tunnel}", "{name: cloudflare-tunnel, annotations: {tunnelgateway.dev/data-plane: envoy}}",
		"{name: other}", "{name: other, annotations: {tunnelgateway.dev/data-plane: envoy}}").Replace(commonManifests)
	route := "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web, namespace: platform}\nspec: {parentRefs: [{name: NAME}, {name: none}]}"
	p := planOf(t, classes, gatewayWithRoute("one", "example.com"), gatewayWithRoute("two", "example.com"),
		annotated("Namespace", "name: platform"), annotated("Namespace", "name: elsewhere"), annotated("Secret", "name: other, namespace: platform"),
		strings.Replace(route, "NAME", "one", 1), strings.NewReplacer("name: web", "name: mine", "NAME", "two").Replace(route))
	if len(p.Mistakes) != 7 {
		t.Fatalf("the plan has the mistakes %v, want 7", p.Mistakes)
	}
	if err := p.Select(types.NamespacedName{Namespace: "platform", Name: "two"}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, mistake := range p.Mistakes {
		got = append(got, mistake.Object.String())
	}
	if want := []string{"GatewayClass cloudflare-tunnel", "HTTPRoute platform/mine", "Namespace platform"}; !slices.Equal(got, want) {
		t.Errorf("the plan of one Gateway has mistakes in %v, want %v", got, want)
	}
}

func TestExplanationListsRoutesThatLackTheirParent(t *testing.T) {
	const manifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared}
spec: {gatewayClassName: cloudflare-tunnel, listeners: [{name: a, hostname: a.example.com, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: answering}
spec: {parentRefs: [{name: shared}, {name: none}], hostnames: [a.example.com], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: wildcard}
spec: {parentRefs: [{kind: ListenerSet, name: none}], hostnames: ["*.example.com"]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: exact}
spec: {parentRefs: [{name: shred}], hostnames: [b.example.com]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: anything}
spec: {}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: mesh}
spec: {parentRefs: [{group: "", kind: Service, name: web}]}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80}]}}
`
	p := planOf(t, manifests)
	const (
		heading  = "Routes that would serve the hostname if their parent existed:\n"
		exact    = "  GRPCRoute default/exact: Gateway default/shred is not in the manifests; did you mean Gateway default/shared?\n"
		anything = "  HTTPRoute default/anything (every hostname of its parent): spec.parentRefs is empty, so no Gateway serves the route. Add a parentRef to a Gateway or ListenerSet.\n"
		wildcard = "  HTTPRoute default/wildcard: ListenerSet default/none is not in the manifests. Add --context to combine the manifests with a cluster.\n"
	)
	for host, want := range map[string]string{
		"a.example.com": heading + wildcard,
		"b.example.com": heading + exact + anything + wildcard,
		"example.org":   heading + anything,
	} {
		var out bytes.Buffer
		if err := p.Explain(routing.Request{Host: host, Path: "/"}).WriteTable(&out, plan.Style{}); err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(out.String(), heading)
		if diff := cmp.Diff(want, heading+got); diff != "" {
			t.Errorf("%s: the end of the explanation differs (-want +got):\n%s", host, diff)
		}
	}
}

// A route without hostnames has those of its ListenerSet, also if the ListenerSet has no
// Gateway.
func TestADetachedRouteHasTheHostnamesOfItsListenerSet(t *testing.T) {
	p := planOf(t, teams)
	for host, want := range map[string]int{"team.example.com": 1, "other.example.com": 0} {
		if got := p.Explain(routing.Request{Host: host, Path: "/"}).Detached; len(got) != want {
			t.Errorf("%s: %d routes would serve the host, want %d: %v", host, len(got), want, got)
		}
	}
}
