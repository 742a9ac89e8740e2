package conformance

import (
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

// checkFeatures fails unless the GatewayClass claims all core features, and
// exactly those extended features whose tests all pass. A test belongs to a
// feature if the claimed features include all other features of the test.
func checkFeatures(t *testing.T, featuresFile string, outcomes results) {
	raw, err := os.ReadFile(featuresFile)
	must(t, err)
	var listed []features.FeatureName
	must(t, yaml.UnmarshalStrict(raw, &listed))
	claimed := sets.New(listed...)
	profile := suite.GatewayHTTPConformanceProfile
	want := sets.New(profile.CoreFeatures.UnsortedList()...)
	for feature := range profile.ExtendedFeatures {
		total, passed := 0, 0
		extended := claimed.Union(sets.New(feature))
		for _, test := range tests.ConformanceTests {
			if slices.Contains(test.Features, feature) && extended.HasAll(test.Features...) {
				total++
				if outcomes[test.ShortName] == passes {
					passed++
				}
			}
		}
		if total > 0 && passed == total {
			want.Insert(feature)
		}
	}
	if diff := cmp.Diff(sets.List(want), listed); diff != "" {
		t.Errorf("the features claimed in internal/gateway/class.go differ from the features whose tests pass (-passing +claimed):\n%s", diff)
	}
}

// readReport reads a report of the suite.
func readReport(t *testing.T, file string) *confv1.ConformanceReport {
	raw, err := os.ReadFile(file)
	must(t, err)
	var report confv1.ConformanceReport
	must(t, yaml.UnmarshalStrict(raw, &report))
	return &report
}
