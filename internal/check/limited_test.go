package check_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/internal/check"
)

// deniable are the kinds that a user may not be permitted to read.
var deniable = []string{
	"GatewayClass", "Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "ReferenceGrant", "BackendTLSPolicy", "TunnelConfiguration", "AccessPolicy", "Tunnel",
	"Namespace", "Service", "ConfigMap", "EndpointSlice", "ServiceImport",
}

// limitedViews are what users can be permitted to read, by description.
func limitedViews() map[string]func(kind, namespace, name string) bool {
	views := map[string]func(kind, namespace, name string) bool{}
	for i, first := range deniable {
		second := deniable[(i+4)%len(deniable)]
		for _, denied := range [][]string{{first}, {first, second}} {
			views[fmt.Sprint("without ", denied)] = func(kind, _, _ string) bool { return !slices.Contains(denied, kind) }
			views[fmt.Sprint("only the team's, without ", denied)] = func(kind, namespace, name string) bool {
				return (namespace == "team" || name != "") && !slices.Contains(denied, kind)
			}
		}
	}
	return views
}

// What a user may not read must not look like a mistake: everything works.
func TestLimitedPermissionsCauseNoFailure(t *testing.T) {
	for name, permits := range limitedViews() {
		c := newCluster(t)
		c.permits = permits
		for _, target := range []string{"shop.example.com", "grpc.example.com"} {
			for _, step := range c.check(t, target).Steps {
				for _, f := range step.Findings {
					if f.Result == check.Failed {
						t.Errorf("%s, %s: %s: %s", name, target, step.Name, f.Message)
					}
				}
			}
		}
	}
}
