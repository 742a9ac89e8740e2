package gateway_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/envoy"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
)

// forEachProtectedCluster checks a property for random clusters whose routes have every
// kind of match and action, and with random Access settings.
func forEachProtectedCluster(t *testing.T, property func(t *testing.T, s *gateway.Snapshot, seed uint64)) {
	t.Helper()
	forEachFullCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		d := &randomizer{Rand: rand.New(rand.NewPCG(seed, 7)), snapshot: s} //nolint:gosec // the test must be reproducible
		class, own := d.settings(), d.settings()
		class.Limits = &v1alpha1.Limits{RulesPerTunnel: new(int32(100_000))} // the oracle knows no limits
		if s.ClassConfiguration != nil {
			class.Hostnames = s.ClassConfiguration.Spec.Hostnames
		}
		setParametersRefs(s)
		s.ClassConfiguration, s.GatewayConfiguration = configuration("platform", "defaults", class), configuration("infra", "own", own)
		property(t, s, seed)
	})
}

// Envoy answers random requests with the rendered routes as the table and the
// specification require: on the listener that the hostname's Access settings decide, and
// on the other one with the status 404.
func TestEnvoyGivesTheSpecifiedAnswer(t *testing.T) {
	answers := map[string]int{}
	forEachProtectedCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		o, table := newEnvoyOracle(s), gateway.Build(s, envoyOptions()).Table
		if (table != nil) != o.accepted() {
			t.Fatalf("has a table: %t, but the Gateway is accepted: %t", table != nil, o.accepted())
		}
		if table == nil {
			return
		}
		resources := envoy.Render(table)
		if err := resourcesProblem(resources); err != nil {
			t.Fatal(err)
		}
		open, protected := newEnvoyMatcher(envoy.Whole(envoy.ListenerOpen, resources.Routes), resources), newEnvoyMatcher(envoy.Whole(envoy.ListenerProtected, resources.Routes), resources)
		dice := rand.New(rand.NewPCG(seed, 8)) //nolint:gosec // the test must be reproducible
		for _, request := range requestsFor(s, seed, true, 150) {
			sent := request
			request.Path, sent.Path = envoyPaths(t, o, dice, request.Path)
			serving, other, listener := open, protected, "open"
			if required, _ := o.requiredAccess(request.Host); required != nil {
				serving, other, listener = protected, open, "protected"
			}
			answer, _ := table.Answer(request)
			want := o.expected(request, describeAnswer(answer))
			if got := describeAnswer(answer); got != want {
				t.Errorf("%s, headers %v: the table answers with %s, want %s", request, request.Headers, got, want)
			}
			if got := serving.describeAnswer(sent); got != withoutSource(want) {
				t.Errorf("%s, headers %v: the %s listener answers with %s, want %s", sent, sent.Headers, listener, got, want)
			}
			if got := other.describeAnswer(sent); got != "no match" {
				t.Errorf("%s: the listener that does not serve the hostname answers with %s", sent, got)
			}
			answers[kindOfAnswer(want)]++
			answers[listener]++
		}
	})
	for _, kind := range []string{"no match", "HTTPRoute", "GRPCRoute", "status 500", "status 503", "redirect", "several backends", "open", "protected"} {
		if answers[kind] == 0 {
			t.Errorf("no request of the clusters has the answer %q", kind)
		}
	}
}

// envoyPaths returns a request path in the form in which Envoy compares paths, and a form
// that Envoy normalizes to it: with escapes in lower case.
func envoyPaths(t *testing.T, o *oracle, dice *rand.Rand, path string) (normal, sent string) {
	t.Helper()
	raw := rawPath(path)
	normal, err := o.literal(raw)
	if got, problem := envoy.Capabilities().RequestPath(raw); got != normal || err != nil || problem != nil {
		t.Fatalf("the path %q of a request is %q (%v) for Envoy, want %q (%v)", raw, got, problem, normal, err)
	}
	if dice.IntN(2) == 0 {
		return normal, normal
	}
	return normal, pathEscape.ReplaceAllStringFunc(normal, strings.ToLower)
}

// Above the limits, Envoy still answers exactly as the table does, and gets no more rules than
// the limits permit.
func TestEnvoyServesTheTableAboveTheLimits(t *testing.T) {
	refused, confined, requests := 0, 0, 0
	forEachProtectedCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
		s.DataPlane = v1alpha1.DataPlaneEnvoy
		limit := lowLimits(s, seed)
		result := gateway.Build(s, envoyOptions())
		if result.Table == nil {
			return
		}
		routes, _ := result.Usage.Refused()
		refused, confined = refused+routes, confined+result.Usage.Confined
		if rules := costOfRules(result); rules > limit*3/2 {
			t.Errorf("Envoy gets %d rules, and the limit is %d", rules, limit)
		}
		resources := envoy.Render(result.Table)
		open, protected := newEnvoyMatcher(envoy.Whole(envoy.ListenerOpen, resources.Routes), resources), newEnvoyMatcher(envoy.Whole(envoy.ListenerProtected, resources.Routes), resources)
		for _, request := range requestsFor(s, seed, true, 100) {
			path, err := envoy.Capabilities().RequestPath(rawPath(request.Path))
			if err != nil {
				continue
			}
			request.Path = path
			answer, _ := result.Table.Answer(request)
			serving := open
			if result.Table.Access.Of(request.Host) != nil {
				serving = protected
			}
			requests++
			if got, want := serving.describeAnswer(request), withoutSource(describeAnswer(answer)); got != want {
				t.Errorf("%s, headers %v: Envoy answers with %s, the table with %s", request, request.Headers, got, want)
			}
		}
	})
	if refused == 0 || confined == 0 || requests == 0 {
		t.Errorf("the clusters do not have every case: %d refused routes, %d confined routes, %d requests", refused, confined, requests)
	}
}

// lowLimits gives the GatewayClass a low limit on rules, and returns it: any limit, or a
// limit that only repetitions for hostnames of other tenants exceed.
func lowLimits(s *gateway.Snapshot, seed uint64) int {
	dice := rand.New(rand.NewPCG(seed, 9)) //nolint:gosec // the test must be reproducible
	limit := 4 + dice.Int32N(60)
	if usage := gateway.Build(s, envoyOptions()).Usage; usage != nil && usage.Repeated > 0 && 2*usage.Repeated > usage.Rules && dice.IntN(4) > 0 {
		limit = int32(usage.Rules) //nolint:gosec // at most 20,000
	}
	s.ClassConfiguration.Spec.Limits = &v1alpha1.Limits{RulesPerTunnel: &limit}
	return int(limit)
}
