package plan

import (
	"cmp"
	"fmt"
)

// Problem is a condition that does not have its expected status.
type Problem struct {
	Owner             Owner
	Condition, Reason string
	Message           string
}

// String describes the object, the condition and its reason.
func (p Problem) String() string {
	return fmt.Sprintf("%s: %s has the reason %s: %s", p.Owner, p.Condition, p.Reason, p.Message)
}

// Problems returns the first unexpected condition for each object, in the order of
// [Plan.Statuses].
func (p *Plan) Problems() []Problem {
	var problems []Problem
	for _, status := range p.Statuses {
		for _, list := range status.conditions {
			if c := firstProblem(status.Kind, list); c != nil {
				problems = append(problems, Problem{Owner{status.Kind, status.Namespace, status.Name}, c.Type, c.Reason, c.Message})
				break
			}
		}
	}
	return problems
}

// ListenerProblems returns the problem of each listener that is not served, with the name of
// the listener as its Condition. The [Problem] of its owner only names the listener.
func (p *Plan) ListenerProblems() []Problem {
	var problems []Problem
	for i := range p.Gateways {
		for _, l := range p.Gateways[i].resultListeners() {
			if problem := cmp.Or(l.Rejected, l.Unresolved); problem != nil {
				problems = append(problems, Problem{newOwner(l.Owner), "listener " + string(l.Spec.Name), problem.Reason.String(), problem.Message})
			}
		}
	}
	return problems
}
