package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// gatewayWithRoute returns a Gateway with a hostname, a ListenerSet and a route.
func gatewayWithRoute(name, hostname string) string {
	return strings.NewReplacer("NAME", name, "HOSTNAME", hostname).Replace(`
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: NAME, namespace: platform}
spec: {gatewayClassName: cloudflare-tunnel, allowedListeners: {namespaces: {from: Same}}, listeners: [{name: a, hostname: HOSTNAME, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: set-NAME, namespace: platform}
spec: {parentRef: {name: NAME}, listeners: [{name: a, hostname: set.HOSTNAME, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route-NAME, namespace: platform}
spec: {parentRefs: [{name: NAME}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
`)
}

const commonManifests = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: cloudflare-tunnel}
spec: {controllerName: tunnelgateway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: platform}, spec: {ports: [{port: 80}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: common-route, namespace: platform}
spec: {parentRefs: [{name: one}, {name: two}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
`

func TestSelectKeepsOneGatewayAndItsStatuses(t *testing.T) {
	p := planOf(t, commonManifests, gatewayWithRoute("one", "example.com"), gatewayWithRoute("two", "example.com"))
	all := len(p.Statuses)
	if err := p.Select(types.NamespacedName{Namespace: "platform", Name: "two"}); err != nil {
		t.Fatal(err)
	}
	if len(p.Gateways) != 1 || p.Gateways[0].Name != "two" {
		t.Errorf("Gateways = %+v, want only platform/two", p.Gateways)
	}
	var objects []string
	for _, s := range p.Statuses {
		objects = append(objects, s.Kind+" "+s.Name)
	}
	want := []string{"Gateway two", "HTTPRoute common-route", "HTTPRoute route-two", "ListenerSet set-two"}
	if diff := cmp.Diff(want, objects); diff != "" || all != 8 {
		t.Errorf("of %d statuses, want 8, the selected ones differ (-want +got):\n%s", all, diff)
	}
	// The status still depends on the other Gateway.
	if text := printed(t, p); !strings.Contains(text, "Gateway platform/one") {
		t.Errorf("the plan does not name the other Gateway with the same hostname:\n%s", text)
	}
}

func TestSelectExplainsWhyAGatewayIsMissing(t *testing.T) {
	variant := func(name, old, now string) string {
		return strings.Replace(gatewayWithRoute(name, name+".example.com"), old, now, 1)
	}
	p := planOf(t, commonManifests, gatewayWithRoute("one", "example.com"), gatewayWithRoute("two", "example.org"),
		variant("managed-elsewhere", "cloudflare-tunnel", "other"), variant("classless", "cloudflare-tunnel", "gone"),
		variant("deleted", "{name: deleted", `{deletionTimestamp: "2026-01-01T00:00:00Z", name: deleted`))
	for name, reason := range map[string]string{
		"none":              "not found",
		"managed-elsewhere": `GatewayClass "other" belongs to another controller`,
		"classless":         `GatewayClass "gone" not found`,
		"deleted":           "being deleted",
	} {
		err := p.Select(types.NamespacedName{Namespace: "platform", Name: name})
		want := fmt.Sprintf("Gateway platform/%s: %s; Gateways of this controller: platform/one, platform/two", name, reason)
		if err == nil || err.Error() != want {
			t.Errorf("Select = %v, want %s", err, want)
		}
	}
	if err := planOf(t, commonManifests).Select(types.NamespacedName{Namespace: "a", Name: "b"}); err == nil || !strings.Contains(err.Error(), "no Gateway uses this controller") {
		t.Errorf("without Gateways, Select = %v", err)
	}
}

// Like the controller, the plan removes a Gateway's status entries while it is being
// deleted.
func TestTerminatingGatewayIsWithdrawn(t *testing.T) {
	served := gatewayWithRoute("one", "example.com")
	entry := `
status:
  parents:
  - parentRef: {name: one}
    controllerName: tunnelgateway.dev/controller
    conditions: [{type: Accepted, status: "True", reason: Accepted, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]
---
`
	deleted := strings.Replace(strings.TrimSuffix(served, "---\n")+strings.TrimPrefix(entry, "\n"),
		"{name: one,", `{deletionTimestamp: "2026-01-01T00:00:00Z", name: one,`, 1)
	p := planOf(t, commonManifests, deleted)
	if len(p.Gateways) != 0 {
		t.Errorf("Gateways = %+v, want none", p.Gateways)
	}
	statuses := map[string]string{}
	for _, s := range p.Statuses {
		statuses[s.Kind] = fmt.Sprintf("%+v", s.Status)
	}
	if got, ok := statuses["HTTPRoute"]; !ok || strings.Contains(got, "tunnelgateway.dev") {
		t.Errorf("status of the route = %q, want no entry of the controller", got)
	}
	if got := statuses["ListenerSet"]; !strings.Contains(got, "Waiting for controller") {
		t.Errorf("status of the ListenerSet = %q, want the default conditions", got)
	}
}

// --why --strict considers only what the answer depends on.
func TestOnlyTheGatewaysOfARequestCount(t *testing.T) {
	problem := strings.Replace(gatewayWithRoute("two", "example.org"), "name: web", "name: missing", 1)
	const lost = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: lost, namespace: platform}
spec: {parentRefs: [{name: none}], hostnames: [b.example.net], rules: [{backendRefs: [{name: web, port: 80}]}]}
`
	common := strings.Replace(commonManifests, "{name: one}, {name: two}", "{name: one}", 1)
	p := planOf(t, common, gatewayWithRoute("one", "example.com"), problem, strings.Replace(gatewayWithRoute("three", "example.net"), "hostname: example.net", `hostname: "*.example.net"`, 1), lost)
	if p.Healthy() {
		t.Error("the whole plan is healthy")
	}
	for host, test := range map[string]struct {
		healthy  bool
		mistakes int
	}{
		"example.com":     {true, 0},
		"example.org":     {false, 0},
		"a.example.net":   {true, 0},
		"b.example.net":   {false, 1},
		"www.example.edu": {false, 1},
	} {
		part := p.For(routing.Request{Host: host, Path: "/"})
		if part.Healthy() != test.healthy || len(part.Mistakes) != test.mistakes {
			t.Errorf("%s: Healthy = %t, mistakes = %v, want %t and %d", host, part.Healthy(), part.Mistakes, test.healthy, test.mistakes)
		}
	}
	if len(p.Gateways) != 3 || len(p.Mistakes) != 1 {
		t.Errorf("the plan has changed: %d Gateways, mistakes %v", len(p.Gateways), p.Mistakes)
	}
}
