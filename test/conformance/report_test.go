package conformance

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/tests"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"
)

// checkDocuments fails if the files in docs/conformance differ from the results
// of this run. It ignores the date and the version of the report.
func checkDocuments(t *testing.T, reportFile string, list exceptions) {
	report := readReport(t, reportFile)
	dir := filepath.Join("..", "..", "docs", "conformance")
	committed, table := filepath.Join(dir, "report.yaml"), filepath.Join(dir, "tests.md")
	if *update && !t.Failed() {
		raw, err := yaml.Marshal(report)
		must(t, err)
		must(t, os.WriteFile(committed, raw, 0o600))
		must(t, os.WriteFile(table, []byte(renderTests(list)), 0o600))
	}
	const advice = "differs from the result of this run; to update it, run `make conformance ARGS=-update` (-want +got):\n"
	unimportant := cmpopts.IgnoreFields(confv1.ConformanceReport{}, "Date", "Implementation.Version")
	if diff := gocmp.Diff(readReport(t, committed), report, unimportant); diff != "" {
		t.Error(committed, advice, diff)
	}
	want, err := os.ReadFile(table)
	must(t, err)
	if diff := gocmp.Diff(string(want), renderTests(list)); diff != "" {
		t.Error(table, advice, diff)
	}
}

// renderTests returns the page with the expected outcome of every test.
func renderTests(list exceptions) string {
	var out strings.Builder
	out.WriteString(testsHead)
	all := slices.SortedFunc(slices.Values(tests.ConformanceTests), func(a, b suite.ConformanceTest) int {
		return cmp.Compare(a.ShortName, b.ShortName)
	})
	fmt.Fprintf(&out, "\n## Tests that pass\n\n| Test | Features |\n|---|---|\n")
	for _, test := range all {
		if list.find(test.ShortName) == nil {
			fmt.Fprintf(&out, "| %s | %s |\n", test.ShortName, join(test.Features))
		}
	}
	for _, section := range []struct {
		title string
		outcome
	}{{"Tests that pass but require a feature that the GatewayClass does not claim", passes}, {"Tests that do not pass", fails}, {"Tests that are not run", notRun}} {
		fmt.Fprintf(&out, "\n## %s\n\n| Test | Reason |\n|---|---|\n", section.title)
		for _, test := range all {
			if e := list.find(test.ShortName); e != nil && e.Outcome == section.outcome {
				fmt.Fprintf(&out, "| %s | %s |\n", test.ShortName, e.Reason)
			}
		}
	}
	return out.String()
}

const testsHead = `<!-- Written by make conformance ARGS=-update from test/conformance/exceptions.yaml. -->
# Conformance test results

This page lists every test of the Gateway API conformance suite v1.6.3 and its result. [Conformance](README.md) describes how the tests
are run. When a rule of a route answers 500 or a match is omitted, the conditions of the route report it.
`

func join(names []features.FeatureName) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = string(name)
	}
	return strings.Join(parts, ", ")
}

// version names the commit that is tested, where git knows it.
func version(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
