package check

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the steps, in the order in which they run.
const (
	StepDecision    = "decision"
	StepObjects     = "objects"
	StepBackend     = "backend"
	StepDNS         = "dns"
	StepCertificate = "certificate"
	StepAccess      = "access"
	StepRequest     = "request"
)

// severity orders the results, the worst last.
var severity = []Result{OK, Unknown, Warning, Failed}

// worst returns the worse of two results.
func worst(a, b Result) Result {
	if slices.Index(severity, b) > slices.Index(severity, a) {
		return b
	}
	return a
}

// newStep returns the step with the findings. Its result is the worst of theirs.
func newStep(name string, all findings) Step {
	s := Step{Name: name, Result: OK, Findings: append([]Finding{}, all...)}
	for _, f := range all {
		s.Result = worst(s.Result, f.Result)
	}
	return s
}

// findings are what a step has found so far.
type findings []Finding

// add adds a finding. The format has one or two sentences.
func (f *findings) add(r Result, format string, args ...any) {
	*f = append(*f, Finding{Result: r, Message: fmt.Sprintf(format, args...)})
}

// advise adds what to do to the last finding.
func (f *findings) advise(format string, args ...any) {
	(*f)[len(*f)-1].Advice = fmt.Sprintf(format, args...)
}

// haveFailed reports whether a finding is a failure.
func (f findings) haveFailed() bool {
	return slices.ContainsFunc(f, func(one Finding) bool { return one.Result == Failed })
}

// adviseIf adds what to do to the last finding, unless there is nothing to do or an earlier
// finding says so.
func (f *findings) adviseIf(advice string) {
	if !slices.ContainsFunc(*f, func(one Finding) bool { return advice != "" && strings.Contains(one.Advice, advice) }) {
		f.advise("%s", advice)
	}
}

// maxShown is how many objects or values a step names.
const maxShown = 3

// abbreviate joins the first items, and says how many more there are.
func abbreviate[T any](items []T) string {
	shown := items[:min(len(items), maxShown)]
	texts := make([]string, len(shown))
	for n, item := range shown {
		texts[n] = fmt.Sprint(item)
	}
	text := strings.Join(texts, ", ")
	if more := len(items) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
