package conformance

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/internal/gateway"
	"github.com/tunnel-gateway/tunnel-gateway/test/cluster"
)

// checkFeatures fails unless the GatewayClass claims all core features in the profiles,
// and exactly those other features whose tests all pass. A test belongs to a feature if
// the claimed features include all the test's other features. The profiles do not
// determine the other features, because GATEWAY-GRPC lacks the GRPCRoute features.
func checkFeatures(t *testing.T, p plane, featuresFile string, outcomes results) {
	raw, err := os.ReadFile(featuresFile)
	must(t, err)
	var listed []features.FeatureName
	must(t, yaml.UnmarshalStrict(raw, &listed))
	if diff := cmp.Diff(confirmedFeatures(p, sets.New(listed...), outcomes), listed); diff != "" {
		t.Errorf("the features claimed in internal/gateway/class.go differ from the features whose tests pass (-passing +claimed):\n%s", diff)
	}
}

// confirmedFeatures returns the features that a GatewayClass with these claims has to
// claim, sorted.
func confirmedFeatures(p plane, claimed sets.Set[features.FeatureName], outcomes results) []features.FeatureName {
	confirmed := sets.New[features.FeatureName]()
	for _, profile := range p.profiles {
		confirmed = confirmed.Union(profile.CoreFeatures)
	}
	for feature := range features.AllFeatures {
		if isConfirmed(feature.Name, claimed, outcomes) {
			confirmed.Insert(feature.Name)
		}
	}
	return sets.List(confirmed)
}

// isConfirmed reports whether the feature has tests, and all of them pass.
func isConfirmed(feature features.FeatureName, claimed sets.Set[features.FeatureName], outcomes results) bool {
	extended := claimed.Union(sets.New(feature))
	confirmed := false
	for _, test := range tests.ConformanceTests {
		if slices.Contains(test.Features, feature) && extended.HasAll(test.Features...) {
			if outcomes[test.ShortName] != passes {
				return false
			}
			confirmed = true
		}
	}
	return confirmed
}

func TestClaimsFollowTheTests(t *testing.T) {
	list := readExceptions(t)
	for _, p := range planes {
		t.Run(string(p.name), func(t *testing.T) {
			claims, outcomes := claims(p), results{}
			for _, name := range testNames() {
				outcomes[name] = list.with(p).expected(name)
			}
			if diff := cmp.Diff(confirmedFeatures(p, claims, outcomes), sets.List(claims)); diff != "" {
				t.Errorf("the claims differ from exceptions.yaml (-exceptions +claims):\n%s", diff)
			}
			outcomes["HTTPRouteNamedRule"] = fails
			if slices.Contains(confirmedFeatures(p, claims, outcomes), features.SupportHTTPRouteNamedRouteRule) {
				t.Error("a feature whose test fails is confirmed")
			}
			outcomes["HTTPRouteNamedRule"] = passes
			claims.Delete(features.SupportHTTPRouteNamedRouteRule)
			if !slices.Contains(confirmedFeatures(p, claims, outcomes), features.SupportHTTPRouteNamedRouteRule) {
				t.Error("a feature that is not claimed and whose test passes is not confirmed")
			}
		})
	}
}

// claims returns the features that a GatewayClass with the data plane claims.
func claims(p plane) sets.Set[features.FeatureName] {
	class := &gatewayv1.GatewayClass{Spec: gatewayv1.GatewayClassSpec{ParametersRef: parametersOf(p)}}
	status := gateway.BuildClass(&gateway.ClassSnapshot{Class: class, Configuration: configurationOf(p), ExperimentalRoutes: *channel == experimental},
		gateway.Options{ControllerNamespace: cluster.ControllerNamespace})
	names := sets.New[features.FeatureName]()
	for _, feature := range status.SupportedFeatures {
		names.Insert(features.FeatureName(feature.Name))
	}
	return names
}

// readReport reads a report that the suite has written. The suite writes the profiles in
// random order; readReport returns GATEWAY-HTTP before GATEWAY-GRPC.
func readReport(t *testing.T, file string) *confv1.ConformanceReport {
	raw, err := os.ReadFile(file)
	must(t, err)
	var report confv1.ConformanceReport
	must(t, yaml.UnmarshalStrict(raw, &report))
	slices.SortFunc(report.ProfileReports, func(a, b confv1.ProfileReport) int { return strings.Compare(b.Name, a.Name) })
	return &report
}
