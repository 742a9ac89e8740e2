package gateway_test

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// countedPair is a pair of an entry, by names.
type countedPair struct {
	route, hostname string
	rule            int
	backend         routing.BackendName
}

// Envoy counts at most maxPairs pairs, and whole rules. All others are reported, and the input
// order does not matter.
func TestCountedPairsStayWithinTheBound(t *testing.T) {
	full := 0
	forEachCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		setParametersRefs(s)
		s.Gateway.Spec.Infrastructure = nil
		s.DataPlane = v1alpha1.DataPlaneEnvoy
		most := int32(1 + seed%20)
		by := []v1alpha1.MetricsDimension{v1alpha1.MetricsByRoute, v1alpha1.MetricsByBackend}[:1+seed%2]
		s.ClassConfiguration = configuration("platform", "defaults", v1alpha1.TunnelConfigurationSpec{Connector: &v1alpha1.Connector{Envoy: &v1alpha1.EnvoyProxy{
			Metrics: &v1alpha1.EnvoyMetrics{By: by, MaxPairs: &most, AllowWorkInProgress: new(true)},
		}}})
		result := gateway.Build(s, envoyOptions())
		if result.Table == nil {
			return
		}
		counted, uncounted := pairsByName(t, result.Table)
		if len(counted) > int(most) || len(uncounted) != result.Uncounted.Pairs {
			t.Fatalf("%d pairs are counted of at most %d, and %d are not, but %d are reported", len(counted), most, len(uncounted), result.Uncounted.Pairs)
		}
		if len(counted)+len(uncounted) <= int(most) && len(uncounted) > 0 {
			t.Errorf("%d pairs are not counted, although all %d fit", len(uncounted), most)
		}
		if len(uncounted) > 0 {
			full++
		}
		dice := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // the test must be reproducible
		dice.Shuffle(len(s.HTTPRoutes), reflect.Swapper(s.HTTPRoutes))
		again, _ := pairsByName(t, gateway.Build(s, envoyOptions()).Table)
		if diff := cmp.Diff(counted, again); diff != "" {
			t.Errorf("the counted pairs depend on the order of the input:\n%s", diff)
		}
	})
	if full == 0 {
		t.Error("no cluster exceeds its bound")
	}
}

// pairsByName returns the pairs that are counted, and the others. It fails if a rule is counted
// in part.
func pairsByName(t *testing.T, table *routing.Table) (counted, uncounted map[countedPair]bool) {
	t.Helper()
	counted, uncounted = map[countedPair]bool{}, map[countedPair]bool{}
	rules := map[countedPair]bool{}
	for e := range table.Entries() {
		rule := countedPair{route: e.Source.Route.Describe(), rule: e.Source.Rule}
		if was, known := rules[rule]; known && was != e.Counted {
			t.Errorf("%s is counted in part", e.Source.Describe())
		}
		rules[rule] = e.Counted
		names := []routing.BackendName{{}}
		if table.Telemetry.CountsBackends() {
			names = e.Action.BackendNames()
		}
		for _, name := range names {
			pair := countedPair{rule.route, e.Hostname, rule.rule, name}
			if e.Counted {
				counted[pair] = true
			} else {
				uncounted[pair] = true
			}
		}
	}
	return counted, uncounted
}
