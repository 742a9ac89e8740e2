package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ObjectChange is an object whose conditions become better or worse.
type ObjectChange struct {
	Object Owner `json:"object"`
	// Change is Better or Worse, or Changed if problems end and others begin. It is Added
	// for a new object with problems.
	Change ChangeKind `json:"change"`
	// Ended are the problems that end, and Begun the new ones.
	Ended []ConditionProblem `json:"ended"`
	Begun []ConditionProblem `json:"begun"`
}

// ConditionProblem is a condition that does not have its expected status.
type ConditionProblem struct {
	Condition string `json:"condition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// String describes the condition and its reason.
func (p ConditionProblem) String() string { return p.Condition + ": " + p.Reason + ": " + p.Message }

// problems returns the first unexpected condition of each list of the object, each once.
func (s *Status) problems() []ConditionProblem {
	all := []ConditionProblem{}
	for _, list := range s.conditions {
		c := firstProblem(s.Kind, list)
		if c == nil {
			continue
		}
		if p := newConditionProblem(c); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

func newConditionProblem(c *metav1.Condition) ConditionProblem {
	return ConditionProblem{Condition: c.Type, Reason: c.Reason, Message: c.Message}
}

func (s *Status) owner() Owner { return Owner{s.Kind, s.Namespace, s.Name} }

// objectChanges returns the objects whose problems differ, in the order of [Plan.Statuses].
// Objects that are gone have no problems.
func (p *Plan) objectChanges(before *Plan) []ObjectChange {
	changes, old := []ObjectChange{}, make(map[Owner]*Status, len(before.Statuses))
	for i := range before.Statuses {
		old[before.Statuses[i].owner()] = &before.Statuses[i]
	}
	for i := range p.Statuses {
		status := &p.Statuses[i]
		c := ObjectChange{Object: status.owner(), Ended: []ConditionProblem{}, Begun: status.problems()}
		earlier := old[c.Object]
		if earlier != nil {
			had := earlier.problems()
			c.Ended, c.Begun = without(had, c.Begun), without(c.Begun, had)
		}
		if c.Change = c.kind(earlier == nil); c.Change != "" {
			changes = append(changes, c)
		}
	}
	return changes
}

// kind returns the kind of the change, or "" if no problem ends or begins.
func (c *ObjectChange) kind(isNew bool) ChangeKind {
	switch begins, ends := len(c.Begun) > 0, len(c.Ended) > 0; {
	case begins && isNew:
		return Added
	case begins && ends:
		return Changed
	case begins:
		return Worse
	case ends:
		return Better
	}
	return ""
}

// without returns the problems that are not among the others. It is never nil.
func without(all, others []ConditionProblem) []ConditionProblem {
	rest := []ConditionProblem{}
	for _, p := range all {
		if !slices.Contains(others, p) {
			rest = append(rest, p)
		}
	}
	return rest
}
