package web

import (
	"reflect"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/plan"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// whyTrace is what one Gateway does with the request.
type whyTrace struct {
	Namespace, Name string
	// Problems are about the Gateway itself.
	Problems []plan.Line
	// Sections are the steps in the order in which a data plane decides.
	Sections []whySection

	isShort bool
}

// whySection is a step with a heading. Only the step about entries has Attempts.
type whySection struct {
	plan.Step
	Heading  string
	Attempts []whyAttempt
}

// whyAttempt is a row for an entry that is tried.
type whyAttempt struct {
	plan.Attempt
	// Number is the position, from 1.
	Number int
}

// stepEntries is the kind for the section with the attempts, in which the steps about
// mismatches and shadowed matches are.
const stepEntries plan.StepKind = "Entries"

// whyHeadings are a trace's sections, in their order.
var whyHeadings = []struct {
	kind    plan.StepKind
	heading string
}{
	{plan.StepListeners, "Hostname and listeners"},
	{plan.StepAccess, "Access"},
	{stepEntries, "Entries, in the order in which they are tried"},
	{plan.StepAnswer, "What happens"},
	{plan.StepUnserved, "Not served"},
	{plan.StepOthers, "Other routes"},
}

func newWhyTrace(t *plan.Trace, request routing.Request, style plan.Style) whyTrace {
	w := whyTrace{Namespace: t.Namespace, Name: t.Name}
	steps := t.Steps(request, style)
	attempts, isShort := newWhyAttempts(t.Attempts, style)
	w.isShort = isShort || !reflect.DeepEqual(steps, t.Steps(request, plan.Style{Wide: true}))
	for _, step := range steps {
		if step.Kind == plan.StepGateway {
			w.Problems = step.Lines
		}
	}
	for _, h := range whyHeadings {
		section := whySection{Heading: h.heading}
		if h.kind == stepEntries {
			section.Attempts = attempts
		} else if i := slices.IndexFunc(steps, func(s plan.Step) bool { return s.Kind == h.kind }); i >= 0 {
			section.Step = steps[i]
		}
		if text := t.OpenAccess(); h.kind == plan.StepAccess && text != "" {
			section.Lines = []plan.Line{{Text: text}}
		}
		if len(section.Attempts)+len(section.Rows)+len(section.Lines) > 0 {
			w.Sections = append(w.Sections, section)
		}
	}
	return w
}

// newWhyAttempts returns the entries that match, and without a wide style, at most 20 others:
// the last ones before the answer. It reports whether some are missing.
func newWhyAttempts(all []plan.Attempt, style plan.Style) (attempts []whyAttempt, isShort bool) {
	const limit = 20
	others := 0
	for i, a := range slices.Backward(all) {
		if !a.Matches {
			others++
		}
		if !a.Matches && others > limit && !style.Wide {
			isShort = true
			continue
		}
		attempts = append(attempts, whyAttempt{Attempt: a, Number: i + 1})
	}
	slices.Reverse(attempts)
	return attempts, isShort
}
