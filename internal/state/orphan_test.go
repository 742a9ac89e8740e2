package state_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// orphanManifests contains routes with a status entry for ListenerSet orphans/gone.
const orphanManifests = `
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: other, namespace: team}
spec: {parentRef: {name: unmanaged, namespace: infra}, listeners: [{name: a, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: orphan, namespace: orphans}
spec: {parentRefs: [{name: gone}, {name: unmanaged, namespace: infra}, {name: classless, namespace: infra}, {kind: ListenerSet, name: other, namespace: team}, {group: "", kind: Service, name: web}]}
STATUS
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: orphan, namespace: orphans}
spec: {}
STATUS
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: of-a-gateway, namespace: orphans}
spec: {parentRefs: [{name: gone}, {name: shared, namespace: team}]}
STATUS
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: of-a-listenerset, namespace: orphans}
spec: {parentRefs: [{kind: ListenerSet, name: near, namespace: team}]}
STATUS
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: never-served, namespace: orphans}
spec: {parentRefs: [{name: gone}, {name: shared, namespace: elsewhere}]}
`

func TestOrphansAreRoutesWithoutAManagedParent(t *testing.T) {
	status := "status:\n  parents:\n"
	for _, parent := range []string{"{kind: ListenerSet, name: gone}", "{name: shared, namespace: infra}"} {
		status += "  - {parentRef: " + parent + ", controllerName: " + controllerName + ", conditions: [{type: Accepted, status: \"True\", reason: Accepted, message: \"\", lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}\n"
	}
	manifests := clusterManifests + strings.ReplaceAll(orphanManifests, "STATUS\n", status)
	reader := memory(t, objects(t, manifests))
	for _, key := range []state.Key{setKey("orphans", "gone"), state.GatewayKey("infra", "shared")} {
		loaded, err := newLoader(reader).Load(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for route := range loaded.Snapshot.Orphans {
			if route.Namespace == "orphans" {
				got = append(got, route.String())
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff([]string{"GRPCRoute orphans/orphan", "HTTPRoute orphans/orphan"}, got); diff != "" {
			t.Errorf("%s: orphans differ (-want +got):\n%s", key, diff)
		}
	}
}
