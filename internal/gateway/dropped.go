package gateway

import (
	"fmt"
	"slices"

	"github.com/tunnel-gateway/tunnel-gateway/internal/message"
	"github.com/tunnel-gateway/tunnel-gateway/internal/routing"
)

// DroppedRule lists the parts of a route's rule that the data plane cannot
// express.
type DroppedRule struct {
	// Rule is the index of the rule, from 0.
	Rule int
	// Actions are the unsupported actions of the rule, without repetition. A rule
	// with an unsupported action answers with the Status.
	Actions []string
	// EnvoySupportsActions reports whether the data plane has ingress rules, and Envoy would
	// support all actions.
	EnvoySupportsActions bool
	// Status is the status that replaces the action, for example 500.
	Status int
	// Matches are the omitted matches of the rule. Their requests go to the next
	// matching rule.
	Matches []OmittedMatch
	// LeftOut reports whether Matches are all matches of the rule, so that the rule
	// answers no request.
	LeftOut bool
}

// OmittedMatch is a match that the data plane cannot express.
type OmittedMatch struct {
	// Match is the index of the match in its rule, from 0.
	Match int
	// Fields are the unsupported fields of the match.
	Fields []string
	// EnvoySupports reports whether the data plane has ingress rules, and Envoy would support
	// the match.
	EnvoySupports bool
}

// The wordings of the outcomes of a rule that the data plane cannot express. The
// conditions, plan and the documentation use the same words.
const (
	wordingMatchOmitted   = "%s is omitted, and its requests go to the next matching rule"
	wordingMatchesOmitted = "%s are omitted, and their requests go to the next matching rule"
	wordingRuleFails      = "the rule answers %d (%s)"
	wordingRuleLeftOut    = "the rule is left out because of %s, and its requests go to the next matching rule"
)

// describe returns the rule and its outcome: "the message for this condition MUST start
// with the prefix "Dropped Rule"". (RouteConditionPartiallyInvalid) Its lists have at most
// about half of the size.
func (d DroppedRule) describe(size int) string {
	return fmt.Sprintf("Dropped Rule %d: %s", d.Rule, d.outcome(size))
}

func (d DroppedRule) outcome(size int) string {
	matches := message.List{MaxSize: size / 2}
	for _, m := range d.Matches {
		matches.Add("match %d (%s)", m.Match, describeUnsupportedParts(m.Fields, m.EnvoySupports, size/4))
	}
	omitted, fails := matches.String(), fmt.Sprintf(wordingRuleFails, d.Status, describeUnsupportedParts(d.Actions, d.EnvoySupportsActions, size/4))
	switch {
	case matches.Len() == 0:
		return fails
	case d.LeftOut && len(d.Actions) > 0:
		return fmt.Sprintf(wordingRuleLeftOut, omitted) + "; if you fix the match, " + fails
	case d.LeftOut:
		return fmt.Sprintf(wordingRuleLeftOut, omitted)
	}
	outcome := fmt.Sprintf(wordingMatchOmitted, omitted)
	if matches.Len() > 1 {
		outcome = fmt.Sprintf(wordingMatchesOmitted, omitted)
	}
	if len(d.Actions) > 0 {
		outcome += "; for the other matches, " + fails
	}
	return outcome
}

// describeUnsupportedParts lists the unsupported parts. A part that Envoy would support is
// not supported by ingress rules.
func describeUnsupportedParts(parts []string, envoySupports bool, size int) string {
	list := message.List{Before: "not supported: ", MaxSize: size}
	if envoySupports {
		list.Before = "not supported by ingress rules: "
	}
	return describeItems(list, parts)
}

// remedyEnvoy follows the description of a feature that Envoy would support.
const remedyEnvoy = "The platform team can set dataPlane: Envoy"

// hasIncompatibleFilters reports whether the rule is not served only because its filters
// exclude each other.
func (d DroppedRule) hasIncompatibleFilters() bool {
	return len(d.Matches) == 0 && len(d.Actions) == 1 && d.Actions[0] == routing.IncompatibleFilters
}

// DescribeDropped describes the rules in one sentence. A second sentence names the remedy if
// Envoy would support a part of them.
func DescribeDropped(rules ...DroppedRule) string {
	return describeDropped(message.MaxSize, rules...)
}

func describeDropped(size int, rules ...DroppedRule) string {
	remedy := ""
	for _, d := range rules {
		if d.EnvoySupportsActions || slices.ContainsFunc(d.Matches, func(m OmittedMatch) bool { return m.EnvoySupports }) {
			remedy = " " + remedyEnvoy + "."
		}
	}
	list := message.List{Separator: "; ", After: "." + remedy, MaxSize: size}
	for _, d := range rules {
		if list.Full() {
			list.Count(1)
			continue
		}
		list.Add("%s", d.describe(size))
	}
	return list.String()
}
