package conformance

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tunnel-gateway/tunnel-gateway/api/v1alpha1"
)

// outcome is how a test in the suite ends.
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
	Reason  string  `json:"reason"`
	Outcome outcome `json:"outcome"`
	// DataPlane is the data plane with this outcome. Empty means both.
	DataPlane v1alpha1.DataPlane `json:"dataPlane,omitempty"`
	// Channel is the channel of the CRDs with this outcome. Empty means both.
	Channel string   `json:"channel,omitempty"`
	Tests   []string `json:"tests"`
}

// readExceptions reads exceptions.yaml, and ends the test if the list is not valid.
func readExceptions(t *testing.T) exceptions {
	var list exceptions
	if err := yaml.UnmarshalStrict(exceptionsFile, &list); err != nil {
		t.Fatalf("exceptions.yaml: %v", err)
	}
	list.checkNames(t)
	for _, e := range list {
		if !strings.HasSuffix(e.Reason, ".") || !slices.Contains([]outcome{passes, fails, notRun}, e.Outcome) {
			t.Errorf("exceptions.yaml: the reason %q must end with a full stop, and the outcome %q must be passes, fails or not run", e.Reason, e.Outcome)
		}
		if !slices.Contains([]v1alpha1.DataPlane{"", v1alpha1.DataPlaneEnvoy, v1alpha1.DataPlaneIngressRules}, e.DataPlane) {
			t.Errorf("exceptions.yaml: the dataPlane %q must be Envoy, IngressRules or empty", e.DataPlane)
		}
		if e.Channel != "" && !slices.Contains(channels, e.Channel) {
			t.Errorf("exceptions.yaml: the channel %q must be standard, experimental or empty", e.Channel)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return list
}

// checkNames reports tests that are not in the suite, or are listed twice for a data plane.
func (x exceptions) checkNames(t *testing.T) {
	known := testNames()
	listed := map[string]bool{}
	for _, p := range planes {
		for _, e := range x.with(p).exceptions {
			for _, name := range e.Tests {
				key := string(p.name) + "/" + name
				if listed[key] || !slices.Contains(known, name) {
					t.Errorf("exceptions.yaml: %s is listed twice, or is not a test of the suite", name)
				}
				listed[key] = true
			}
		}
	}
}

// expectations are the expected outcomes with one data plane.
type expectations struct {
	plane
	exceptions exceptions
}

// with returns the expected outcomes with the data plane and the installed CRDs.
func (x exceptions) with(p plane) expectations {
	applies := func(e exception) bool {
		return (e.DataPlane == "" || e.DataPlane == p.name) && (e.Channel == "" || e.Channel == *channel)
	}
	return expectations{p, slices.DeleteFunc(slices.Clone(x), func(e exception) bool { return !applies(e) })}
}

// expected returns the expected outcome of a test.
func (x expectations) expected(name string) outcome {
	if e := x.exceptions.find(name); e != nil {
		return e.Outcome
	}
	return passes
}

// runFor returns the run that determines a test's outcome, or "". An exception that
// applies to both data planes is only verified with Envoy, because it does not depend on
// the data plane.
func (x expectations) runFor(name string) string {
	e := x.exceptions.find(name)
	switch {
	case e == nil:
		return supportedRun
	case e.DataPlane == "" && x.name != v1alpha1.DataPlaneEnvoy:
		return ""
	case e.Outcome == passes:
		return byNameRun
	case e.Outcome == fails:
		return unsupportedRun
	default:
		return ""
	}
}

// testsIn returns the tests whose outcome the run determines, sorted.
func (x expectations) testsIn(run string) []string {
	return slices.DeleteFunc(testNames(), func(name string) bool { return x.runFor(name) != run })
}

// testsOutside returns all other tests in the suite, sorted.
func (x expectations) testsOutside(run string) []string {
	return slices.DeleteFunc(testNames(), func(name string) bool { return x.runFor(name) == run })
}

func (x exceptions) find(name string) *exception {
	for i, e := range x {
		if slices.Contains(e.Tests, name) {
			return &x[i]
		}
	}
	return nil
}
