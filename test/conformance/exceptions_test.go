package conformance

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// outcome is what becomes of a test.
type outcome string

const (
	passes outcome = "passes"
	fails  outcome = "fails"
	notRun outcome = "not run"
)

//go:embed exceptions.yaml
var exceptionsFile []byte

// exceptions is the list of tests that are not part of what we claim.
type exceptions []exception

// exception is one reason, and the tests that it is the reason for.
type exception struct {
	Reason  string   `json:"reason"`
	Outcome outcome  `json:"outcome"`
	Tests   []string `json:"tests"`
}

// readExceptions reads the list, and ends the test if it is not in order.
func readExceptions(t *testing.T) exceptions {
	var list exceptions
	if err := yaml.UnmarshalStrict(exceptionsFile, &list); err != nil {
		t.Fatalf("exceptions.yaml: %v", err)
	}
	known := testNames()
	listed := map[string]bool{}
	for _, e := range list {
		if !strings.HasSuffix(e.Reason, ".") || !slices.Contains([]outcome{passes, fails, notRun}, e.Outcome) {
			t.Errorf("exceptions.yaml: the reason %q is no sentence, or its outcome %q none of passes, fails and not run", e.Reason, e.Outcome)
		}
		for _, name := range e.Tests {
			if listed[name] || !slices.Contains(known, name) {
				t.Errorf("exceptions.yaml: %s is listed twice, or no test of the suite", name)
			}
			listed[name] = true
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return list
}

// expected is what should become of a test.
func (x exceptions) expected(name string) outcome {
	if e := x.find(name); e != nil {
		return e.Outcome
	}
	return passes
}

// runsIn is the run whose outcome of a test counts.
func (x exceptions) runsIn(name string) string {
	e := x.find(name)
	switch {
	case e == nil:
		return claimedRun
	case e.Outcome == passes:
		return byNameRun
	case e.Outcome == fails:
		return unclaimedRun
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

// with are the tests on the list that have one of the outcomes, sorted.
func (x exceptions) with(outcomes ...outcome) []string {
	return slices.DeleteFunc(testNames(), func(name string) bool {
		e := x.find(name)
		return e == nil || !slices.Contains(outcomes, e.Outcome)
	})
}

// without are all other tests of the suite, sorted.
func (x exceptions) without(outcomes ...outcome) []string {
	with := x.with(outcomes...)
	return slices.DeleteFunc(testNames(), func(name string) bool { return slices.Contains(with, name) })
}
