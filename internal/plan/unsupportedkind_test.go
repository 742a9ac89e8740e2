package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
)

// unsupportedManifests are objects of kinds that the controller does not read. Only some refer to
// an object that it serves.
const unsupportedManifests = `
apiVersion: gateway.networking.k8s.io/v1alpha2
kind: TCPRoute
metadata: {name: db, namespace: infra}
spec: {parentRefs: [{name: shared}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: other-db, namespace: infra}
spec: {parentRefs: [{name: shared}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: team, namespace: team}
spec: {parentRefs: [{kind: ListenerSet, name: admitted}, {name: external, namespace: infra}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: external, namespace: infra}
spec: {parentRefs: [{name: external}, {group: "", kind: Service, name: web, namespace: team}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: used, namespace: team}
spec: {targetRefs: [{group: "", kind: Service, name: web}, {group: "", kind: Service, name: unused}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: unused, namespace: infra}
spec: {targetRefs: [{group: "", kind: Service, name: web}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XListenerSet
metadata: {name: old, namespace: team}
spec: {parentRef: {name: shared, namespace: infra}, listeners: [{name: a, hostname: old.example.com, port: 80, protocol: HTTP}]}
---
{apiVersion: gateway.networking.x-k8s.io/v1alpha1, kind: XMesh, metadata: {name: mesh}, spec: {controllerName: a.example/b}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: external, namespace: infra}
spec: {gatewayClassName: other, listeners: [{name: home, hostname: home.example.org, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XListenerSet
metadata: {name: external, namespace: team}
spec: {parentRef: {name: external, namespace: infra}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: external, namespace: team}
spec: {parentRefs: [{group: gateway.networking.x-k8s.io, kind: XListenerSet, name: external}], rules: [{backendRefs: [{name: unused, port: 80}]}]}
`

func TestObjectsThatAreNotReadAreMistakes(t *testing.T) {
	p := planOf(t, shared, teams, unsupportedManifests)
	want := `TCPRoute infra/db, TCPRoute infra/other-db: The controller does not read TCPRoutes, so they are not served on Gateway infra/shared. Tunnels serve only HTTPRoutes and GRPCRoutes.
TLSRoute team/team: The controller does not read TLSRoutes, so they are not served on ListenerSet team/admitted. Tunnels serve only HTTPRoutes and GRPCRoutes.
XBackendTrafficPolicy team/used: The controller does not read XBackendTrafficPolicies, so they have no effect on Service team/web.
XListenerSet team/old: The controller does not read XListenerSets, so their listeners are not served on Gateway infra/shared; did you mean kind ListenerSet of gateway.networking.k8s.io/v1?
`
	if diff := cmp.Diff(want, listed(t, p, plan.Style{})); diff != "" || p.Healthy() {
		t.Errorf("Healthy = %t, and the mistakes differ (-want +got):\n%s", p.Healthy(), diff)
	}
	if err := p.Select(types.NamespacedName{Namespace: "infra", Name: "shared"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, listed(t, p, plan.Style{})); diff != "" {
		t.Errorf("with --gateway, the mistakes differ (-want +got):\n%s", diff)
	}
}

func TestMistakesOfOtherGatewaysAreNotSelected(t *testing.T) {
	other := strings.NewReplacer("name: shared", "name: second", "home.example.com", "second.example.com").Replace(shared)
	p := planOf(t, shared, teams, unsupportedManifests, other)
	if err := p.Select(types.NamespacedName{Namespace: "infra", Name: "second"}); err != nil {
		t.Fatal(err)
	}
	if len(p.Mistakes) != 0 {
		t.Errorf("the mistakes are %v, want none", p.Mistakes)
	}
}

func TestRoutesOnAnOldListenerSetHaveASuggestion(t *testing.T) {
	const route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team}
spec: {parentRefs: [{group: gateway.networking.x-k8s.io, kind: XListenerSet, name: NAME}]}
`
	const want = "HTTPRoute team/web: spec.parentRefs[0] refers to XListenerSet team/NAME, and the controller does not read XListenerSets; did you mean kind ListenerSet of gateway.networking.k8s.io/v1?\n"
	for _, name := range []string{"old", "missing"} {
		got := listed(t, planOf(t, shared, unsupportedManifests, strings.Replace(route, "NAME", name, 1)), plan.Style{})
		if want := strings.Replace(want, "NAME", name, 1); !strings.Contains(got, want) {
			t.Errorf("the mistakes are\n%s\nwant %q", got, want)
		}
	}
}
