package conformance

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

// checkFeatures fails unless the GatewayClass claims all core features of the profiles,
// and exactly those other features whose tests all pass. A test belongs to a feature if
// the claimed features include all other features of the test. The profiles do not
// determine the other features, because GATEWAY-GRPC lacks those of GRPCRoutes.
func checkFeatures(t *testing.T, p plane, featuresFile string, outcomes results) {
	raw, err := os.ReadFile(featuresFile)
	must(t, err)
	var listed []features.FeatureName
	must(t, yaml.UnmarshalStrict(raw, &listed))
	claimed, want := sets.New(listed...), sets.New[features.FeatureName]()
	for _, profile := range p.profiles {
		want = want.Union(profile.CoreFeatures)
	}
	for feature := range features.AllFeatures {
		if isConfirmed(feature.Name, claimed, outcomes) {
			want.Insert(feature.Name)
		}
	}
	if diff := cmp.Diff(sets.List(want), listed); diff != "" {
		t.Errorf("the features claimed in internal/gateway/class.go differ from the features whose tests pass (-passing +claimed):\n%s", diff)
	}
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

// readReport reads a report of the suite.
func readReport(t *testing.T, file string) *confv1.ConformanceReport {
	raw, err := os.ReadFile(file)
	must(t, err)
	var report confv1.ConformanceReport
	must(t, yaml.UnmarshalStrict(raw, &report))
	return &report
}
