package conformance

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// outcome is the outcome of a test of the suite.
type outcome string

const (
	passes outcome = "passes"
	fails  outcome = "fails"
	notRun outcome = "not run"
)

//go:embed exceptions.yaml
var exceptionsFile []byte

// exceptions lists the tests that the claimed features do not include.
type exceptions []exception

// exception is the outcome of some tests, and the reason for it.
type exception struct {
	Reason  string   `json:"reason"`
	Outcome outcome  `json:"outcome"`
	Tests   []string `json:"tests"`
}

// readExceptions reads exceptions.yaml, and ends the test if the list is not valid.
func readExceptions(t *testing.T) exceptions {
	var list exceptions
	if err := yaml.UnmarshalStrict(exceptionsFile, &list); err != nil {
		t.Fatalf("exceptions.yaml: %v", err)
	}
	known := testNames()
	listed := map[string]bool{}
	for _, e := range list {
		if !strings.HasSuffix(e.Reason, ".") || !slices.Contains([]outcome{passes, fails, notRun}, e.Outcome) {
			t.Errorf("exceptions.yaml: the reason %q must end with a full stop, and the outcome %q must be passes, fails or not run", e.Reason, e.Outcome)
		}
		for _, name := range e.Tests {
			if listed[name] || !slices.Contains(known, name) {
				t.Errorf("exceptions.yaml: %s is listed twice, or is not a test of the suite", name)
			}
			listed[name] = true
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return list
}

// expected returns the expected outcome of a test.
func (x exceptions) expected(name string) outcome {
	if e := x.find(name); e != nil {
		return e.Outcome
	}
	return passes
}

// runFor returns the run that determines the outcome of a test, or "".
func (x exceptions) runFor(name string) string {
	e := x.find(name)
	switch {
	case e == nil:
		return supportedRun
	case e.Outcome == passes:
		return byNameRun
	case e.Outcome == fails:
		return unsupportedRun
	default:
		return ""
	}
}

func (x exceptions) find(name string) *exception {
	for i, e := range x {
		if slices.Contains(e.Tests, name) {
			return &x[i]
		}
	}
	return nil
}

// testsWith returns the tests on the list with one of the outcomes, sorted.
func (x exceptions) testsWith(outcomes ...outcome) []string {
	return slices.DeleteFunc(testNames(), func(name string) bool {
		e := x.find(name)
		return e == nil || !slices.Contains(outcomes, e.Outcome)
	})
}

// testsWithout returns the tests of the suite that testsWith does not return,
// sorted.
func (x exceptions) testsWithout(outcomes ...outcome) []string {
	included := x.testsWith(outcomes...)
	return slices.DeleteFunc(testNames(), func(name string) bool { return slices.Contains(included, name) })
}
