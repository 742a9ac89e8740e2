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

// documents is the directory with the reports and the table.
var documents = filepath.Join("..", "..", "docs", "conformance")

const advice = "differs from the result of this run; to update it, run `make conformance ARGS=-update` (-want +got):\n"

// checkReport fails if the report in docs/conformance differs from this run's report. It
// ignores the date and the version.
func checkReport(t *testing.T, p plane, file string, write bool) {
	report, committed := readReport(t, file), filepath.Join(documents, p.report)
	if write {
		raw, err := yaml.Marshal(report)
		must(t, err)
		must(t, os.WriteFile(committed, raw, 0o600))
	}
	unimportant := cmpopts.IgnoreFields(confv1.ConformanceReport{}, "Date", "Implementation.Version")
	if diff := gocmp.Diff(readReport(t, committed), report, unimportant); diff != "" {
		t.Error(committed, advice, diff)
	}
	core := report.ProfileReports[0].Core.Statistics
	page, err := os.ReadFile(filepath.Join(documents, "README.md"))
	must(t, err)
	if text := fmt.Sprintf("%d of %d pass", core.Passed, core.Passed+core.Skipped); !strings.Contains(string(page), text) {
		t.Errorf("docs/conformance/README.md does not contain %q, the result of the core tests with the data plane %s", text, p.name)
	}
}

func TestProfilesOfAReportHaveOneOrder(t *testing.T) {
	for _, names := range [][]string{{"GATEWAY-GRPC", "GATEWAY-HTTP"}, {"GATEWAY-HTTP", "GATEWAY-GRPC"}} {
		raw, err := yaml.Marshal(confv1.ConformanceReport{ProfileReports: []confv1.ProfileReport{{Name: names[0]}, {Name: names[1]}}})
		must(t, err)
		file := filepath.Join(t.TempDir(), "report.yaml")
		must(t, os.WriteFile(file, raw, 0o600))
		if got := readReport(t, file).ProfileReports; got[0].Name != "GATEWAY-HTTP" || got[1].Name != "GATEWAY-GRPC" {
			t.Errorf("the profiles %q are %s and %s, want GATEWAY-HTTP first", names, got[0].Name, got[1].Name)
		}
	}
}

// checkTable fails if the table of tests in docs/conformance differs from the expected
// outcomes.
func checkTable(t *testing.T, list exceptions, write bool) {
	table := filepath.Join(documents, "tests.md")
	if write {
		must(t, os.WriteFile(table, []byte(renderTests(list)), 0o600))
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
	for _, p := range planes {
		fmt.Fprintf(&out, "\n## Data plane %s\n", p.name)
		renderPlane(&out, all, list.with(p).exceptions)
	}
	fmt.Fprintf(&out, "\n## Tests that are not run\n\n")
	renderReasons(&out, all, list, notRun)
	return out.String()
}

// renderPlane writes the tests with one data plane.
func renderPlane(out *strings.Builder, all []suite.ConformanceTest, list exceptions) {
	fmt.Fprintf(out, "\n### Tests that pass\n\n| Test | Features |\n|---|---|\n")
	for _, test := range all {
		if list.find(test.ShortName) == nil {
			fmt.Fprintf(out, "| %s | %s |\n", test.ShortName, join(test.Features))
		}
	}
	fmt.Fprintf(out, "\n### Tests that pass but require a feature that the GatewayClass does not claim\n\n")
	renderReasons(out, all, list, passes)
	fmt.Fprintf(out, "\n### Tests that do not pass\n\n")
	renderReasons(out, all, list, fails)
}

// renderReasons writes a table of the tests with the outcome.
func renderReasons(out *strings.Builder, all []suite.ConformanceTest, list exceptions, o outcome) {
	fmt.Fprintf(out, "| Test | Reason |\n|---|---|\n")
	for _, test := range all {
		if e := list.find(test.ShortName); e != nil && e.Outcome == o {
			fmt.Fprintf(out, "| %s | %s |\n", test.ShortName, e.Reason)
		}
	}
}

const testsHead = `<!-- Written by make conformance ARGS=-update from test/conformance/exceptions.yaml. -->
# Conformance test results

This page lists every test of the Gateway API conformance suite v1.6.3 and its result with each [data plane](../data-planes.md).
[Conformance](README.md) describes how the tests are run. When a rule returns 500 or a match is omitted, the route's conditions
report it.
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
