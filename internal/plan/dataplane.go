package plan

import (
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/decision"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
	"github.com/tunnel-gateway/tunnel-gateway/internal/state"
)

// dataPlanes returns the data planes that a plan supports. The API server gives every
// Service a ClusterIP, so only Services in manifests can lack one.
func dataPlanes(source *state.Source) routing.DataPlanes {
	planes := decision.DataPlanes()
	withEnvoy := planes[v1alpha1.DataPlaneEnvoy]
	withEnvoy.NeedsClusterIP = !source.HasManifests
	planes[v1alpha1.DataPlaneEnvoy] = withEnvoy
	return planes
}

// unreachableRules returns the route rules that no request reaches.
func unreachableRules(r *gateway.Result) []routing.UnreachableRule {
	if r.DataPlane == v1alpha1.DataPlaneEnvoy {
		return r.Table.UnreachableRules()
	}
	return ingress.UnreachableRules(r.Table)
}

// servedHostnames returns the hostnames in a table's groups and entries.
func servedHostnames(t *routing.Table) []string {
	var all []string
	for i := range t.Groups {
		all = append(all, t.Groups[i].Hostname)
		for j := range t.Groups[i].Entries {
			all = append(all, t.Groups[i].Entries[j].Hostname)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
