package gateway

import (
	"fmt"
	"strings"
)

// DroppedRule lists the parts of a route's rule that the data plane cannot
// express.
type DroppedRule struct {
	// Rule is the index of the rule, from 0.
	Rule int
	// Actions are the unsupported actions of the rule, without repetition. A rule
	// with an unsupported action answers with the Status.
	Actions []string
	// Status is the status that replaces the action, for example 500.
	Status int
	// Matches are the omitted matches of the rule. Their requests go to the next
	// matching rule.
	Matches []OmittedMatch
}

// OmittedMatch is a match that the data plane cannot express.
type OmittedMatch struct {
	// Match is the index of the match in its rule, from 0.
	Match int
	// Fields are the unsupported fields of the match.
	Fields []string
}

// String describes the rule and its outcome as a clause that begins with
// "Dropped Rule".
func (d DroppedRule) String() string { return d.describe("Dropped Rule") }

func (d DroppedRule) describe(noun string) string {
	switch {
	case len(d.Matches) == 0:
		return fmt.Sprintf("%s %d answers %d (not supported: %s)", noun, d.Rule, d.Status, strings.Join(d.Actions, ", "))
	case len(d.Actions) == 0:
		return fmt.Sprintf("%s %d: %s", noun, d.Rule, describeOmitted(d.Matches...))
	default:
		return fmt.Sprintf("%s %d: %s; otherwise the rule answers %d (not supported: %s)",
			noun, d.Rule, describeOmitted(d.Matches...), d.Status, strings.Join(d.Actions, ", "))
	}
}

// describeOmitted describes omitted matches of one rule and their outcome.
func describeOmitted(matches ...OmittedMatch) string {
	names := make([]string, len(matches))
	for i, m := range matches {
		names[i] = fmt.Sprintf("match %d (not supported: %s)", m.Match, strings.Join(m.Fields, ", "))
	}
	if len(names) == 1 {
		return names[0] + " is omitted, and its requests go to the next matching rule"
	}
	return strings.Join(names, ", ") + " are omitted, and their requests go to the next matching rule"
}

// describeDropped describes the rules in one sentence: "the message for this
// condition MUST start with the prefix "Dropped Rule"".
// (RouteConditionPartiallyInvalid)
func describeDropped(rules []DroppedRule) string {
	parts := make([]string, len(rules))
	for i, d := range rules {
		noun := "rule"
		if i == 0 {
			noun = "Dropped Rule"
		}
		parts[i] = d.describe(noun)
	}
	return strings.Join(parts, "; ") + "."
}
