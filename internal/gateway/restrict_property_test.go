package gateway_test

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/internal/ingress"
	"github.com/tunnel-gateway/tunnel-gateway/provider"
	"github.com/tunnel-gateway/tunnel-gateway/test/edge/simulator"
)

func changeObjects(s *gateway.Snapshot, dice *rand.Rand) {
	byName := func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) }
	for _, name := range slices.SortedFunc(maps.Keys(maps.Collect(s.Services.All())), byName) {
		if dice.IntN(8) == 0 {
			external := s.Services.Value(name).DeepCopy()
			external.Spec.Type, external.Spec.ExternalName = corev1.ServiceTypeExternalName, "elsewhere.example.com"
			s.Services.Set(name, external)
		}
	}
	s.HTTPRoutes = slices.DeleteFunc(slices.Clone(s.HTTPRoutes), func(*gatewayv1.HTTPRoute) bool { return dice.IntN(16) == 0 })
	s.ListenerSets = slices.DeleteFunc(slices.Clone(s.ListenerSets), func(*gatewayv1.ListenerSet) bool { return dice.IntN(16) == 0 })
	if dice.IntN(4) == 0 {
		s.GatewayConfiguration = configuration("infra", "own", v1alpha1.TunnelConfigurationSpec{})
	}
}

// evaluated is a configuration that is evaluated as a connector does.
type evaluated struct {
	*provider.Configuration
	rules *simulator.Rules
}

func evaluate(t *testing.T, c *provider.Configuration) evaluated {
	t.Helper()
	return evaluated{c, compile(t, c)}
}

// rule returns the rule that answers a request, and whether it has a backend.
func (e evaluated) rule(host, path string) (provider.IngressRule, bool) {
	index, service, _ := e.rules.Match(host, path)
	rule := e.Ingress[index]
	rule.Hostname, rule.Path = "", ""
	rule.Service = strings.Replace(service, "127.0.0.1:10081", "127.0.0.1:10080", 1) // both listeners belong to one Envoy
	return rule, !strings.HasPrefix(service, "http_status:")
}

// revocations counts the requests in a test.
type revocations struct{ revoked, same, kept int }

// check checks what the restricted configuration does with a request.
func (n *revocations) check(t *testing.T, last, desired, restricted evaluated, host, path string) {
	t.Helper()
	before, wasForwarded := last.rule(host, path)
	after, forwards := desired.rule(host, path)
	now, isForwarded := restricted.rule(host, path)
	sameBackend := wasForwarded && forwards && before.Service == after.Service
	isAllowed := sameBackend && now.Service == before.Service && requires(now, before) && requires(now, after)
	if isForwarded && !isAllowed {
		t.Errorf("%s%s reaches %+v, but the last configuration has %+v, and the desired one %+v", host, path, now, before, after)
	}
	if wasForwarded {
		n.count(sameBackend && requires(before, after), isForwarded, reflect.DeepEqual([]any{before, last.OriginRequest}, []any{after, desired.OriginRequest}))
	}
}

// count counts a request that the last configuration forwards.
func (n *revocations) count(staysAllowed, isForwarded, isEqual bool) {
	if !staysAllowed {
		n.revoked++
	}
	if isEqual {
		if n.same++; isForwarded {
			n.kept++
		}
	}
}

// requires reports whether a rule requires the Access settings of another rule, or the
// other requires none.
func requires(rule, other provider.IngressRule) bool {
	access, required := rule.OriginRequest.Access, other.OriginRequest.Access
	return required == nil || access != nil && access.TeamName == required.TeamName &&
		!slices.ContainsFunc(access.AUDTag, func(tag string) bool { return !slices.Contains(required.AUDTag, tag) })
}

// When objects change, the restricted configuration forwards only the requests that both
// configurations forward to the same backend. Other requests keep their backend, except
// in rare cases in which the rules in the two configurations cannot be combined.
func TestRestrictedConfigurationOfClusterForwardsOnlyWhatStaysAllowed(t *testing.T) {
	for plane, configurationOf := range map[string]func(*gateway.Result) *provider.Configuration{
		"IngressRules": func(r *gateway.Result) *provider.Configuration { return rulesConfiguration(r.Table) },
		"Envoy":        func(r *gateway.Result) *provider.Configuration { return ingress.EnvoyConfiguration(r.Table) },
	} {
		t.Run(plane, func(t *testing.T) {
			n := &revocations{}
			forEachConfiguredCluster(t, func(t *testing.T, s *gateway.Snapshot, seed uint64) {
				last := configurationOf(gateway.Build(s, randomOptions))
				dice := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // the test must be reproducible
				hosts, paths := append(hostsAround(s), accessHosts()...), pathsAround(s)
				changeObjects(s, dice)
				desired := configurationOf(gateway.Build(s, randomOptions))
				if last == nil || desired == nil {
					return
				}
				restricted, _ := ingress.Restrict(*last, *desired)
				l, d, r := evaluate(t, last), evaluate(t, desired), evaluate(t, &restricted)
				for range 400 {
					n.check(t, l, d, r, hosts[dice.IntN(len(hosts))], paths[dice.IntN(len(paths))])
				}
			})
			t.Logf("%d revoked requests; %d of %d requests with the same backend keep it", n.revoked, n.kept, n.same)
			if n.revoked == 0 || n.kept < n.same*99/100 {
				t.Errorf("%d revoked requests; %d of %d requests with the same backend keep it, want at least 99 %%", n.revoked, n.kept, n.same)
			}
		})
	}
}
