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

// checkCommittedReport fails if the report or the table in docs/conformance
// differs from the result of this run. It ignores the report's date and version.
func checkCommittedReport(t *testing.T, reportFile string, list exceptions) {
	report := readReport(t, reportFile)
	dir := filepath.Join("..", "..", "docs", "conformance")
	committed, table := filepath.Join(dir, "report.yaml"), filepath.Join(dir, "tests.md")
	if *update && !t.Failed() {
		raw, err := yaml.Marshal(report)
		must(t, err)
		must(t, os.WriteFile(committed, raw, 0o600))
		must(t, os.WriteFile(table, []byte(renderTests(list)), 0o600))
	}
	const advice = "differs from the result of this run; if the result is correct, update it with `make conformance ARGS=-update` (-want +got):\n"
	ignored := cmpopts.IgnoreFields(confv1.ConformanceReport{}, "Date", "Implementation.Version")
	if diff := gocmp.Diff(readReport(t, committed), report, ignored); diff != "" {
		t.Error(committed, advice, diff)
	}
	want, err := os.ReadFile(table)
	must(t, err)
	if diff := gocmp.Diff(string(want), renderTests(list)); diff != "" {
		t.Error(table, advice, diff)
	}
}

// renderTests returns the table of all tests of the suite with their outcomes.
func renderTests(list exceptions) string {
	var out strings.Builder
	out.WriteString(testsHead)
	all := slices.SortedFunc(slices.Values(tests.ConformanceTests), func(a, b suite.ConformanceTest) int {
		return cmp.Compare(a.ShortName, b.ShortName)
	})
	fmt.Fprintf(&out, "\n## Pass\n\n| Test | Features |\n|---|---|\n")
	for _, test := range all {
		if list.find(test.ShortName) == nil {
			fmt.Fprintf(&out, "| %s | %s |\n", test.ShortName, join(test.Features))
		}
	}
	for _, section := range []struct {
		title string
		outcome
	}{{"Pass, but are not part of what the GatewayClass claims", passes}, {"Do not pass", fails}, {"Do not run", notRun}} {
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
# The conformance suite, test by test

Every test of the Gateway API's conformance suite v1.6.3, and what becomes of it. [How the run is made](README.md).
`

func join(names []features.FeatureName) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = string(name)
	}
	return strings.Join(parts, ", ")
}

// version returns the name of the tested commit, or "unknown" outside a git
// repository.
func version(t *testing.T) string {
	out, err := exec.CommandContext(t.Context(), "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
