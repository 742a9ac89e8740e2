package conformance

import (
	"os"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

// checkFeatures fails unless the GatewayClass claims exactly the extended
// features whose every test passes. A test counts for a feature when the
// feature is all that is missing for it.
func checkFeatures(t *testing.T, reportFile string, seen results) {
	claimed := claimedFeatures(t, reportFile)
	for _, feature := range sets.List(suite.GatewayHTTPConformanceProfile.ExtendedFeatures) {
		total, passed := 0, 0
		with := claimed.Union(sets.New(feature))
		for _, test := range tests.ConformanceTests {
			if slices.Contains(test.Features, feature) && with.HasAll(test.Features...) {
				total++
				if seen[test.ShortName] == passes {
					passed++
				}
			}
		}
		switch {
		case claimed.Has(feature) && (total == 0 || passed < total):
			t.Errorf("%s is claimed, but %d of its %d tests pass", feature, passed, total)
		case !claimed.Has(feature) && total > 0 && passed == total:
			t.Errorf("all %d tests of %s pass: claim it in internal/gateway/class.go", total, feature)
		}
	}
}

// claimedFeatures are those that the suite has read from the GatewayClass.
func claimedFeatures(t *testing.T, reportFile string) sets.Set[features.FeatureName] {
	claimed := sets.New(suite.GatewayHTTPConformanceProfile.CoreFeatures.UnsortedList()...)
	for _, profile := range readReport(t, reportFile).ProfileReports {
		if profile.Extended == nil {
			continue
		}
		for _, feature := range profile.Extended.SupportedFeatures {
			claimed.Insert(features.FeatureName(feature))
		}
	}
	return claimed
}

func readReport(t *testing.T, file string) *confv1.ConformanceReport {
	raw, err := os.ReadFile(file)
	must(t, err)
	var report confv1.ConformanceReport
	must(t, yaml.UnmarshalStrict(raw, &report))
	return &report
}
