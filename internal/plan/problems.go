package plan

import "fmt"

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
			if c := firstUnexpected(list); c != nil {
				problems = append(problems, Problem{Owner{status.Kind, status.Namespace, status.Name}, c.Type, c.Reason, c.Message})
				break
			}
		}
	}
	return problems
}
