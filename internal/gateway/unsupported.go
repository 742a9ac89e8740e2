package gateway

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// DroppedRule lists the parts of a route's rule that an ingress rule cannot
// express.
type DroppedRule struct {
	// Rule is the index of the rule, from 0.
	Rule int
	// Actions are the unsupported actions of the rule, without repetition. A rule
	// with an unsupported action answers 500.
	Actions []string
	// Matches are the omitted matches of the rule. Their requests go to the next
	// matching rule.
	Matches []OmittedMatch
}

// OmittedMatch is a match that an ingress rule cannot express.
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
		return fmt.Sprintf("%s %d answers 500 (not supported: %s)", noun, d.Rule, strings.Join(d.Actions, ", "))
	case len(d.Actions) == 0:
		return fmt.Sprintf("%s %d: %s", noun, d.Rule, describeOmitted(d.Matches...))
	default:
		return fmt.Sprintf("%s %d: %s; otherwise the rule answers 500 (not supported: %s)",
			noun, d.Rule, describeOmitted(d.Matches...), strings.Join(d.Actions, ", "))
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

// translateMatch returns the path match of a match, and the fields of the match
// that an ingress rule cannot express. A match with such fields is omitted.
func translateMatch(match gatewayv1.HTTPRouteMatch) (pathMatch, []string) {
	var fields []string
	path, err := newPathMatch(match.Path)
	if err != nil {
		fields = append(fields, err.Error())
	}
	if len(match.Headers) > 0 {
		fields = append(fields, "headers")
	}
	if len(match.QueryParams) > 0 {
		fields = append(fields, "queryParams")
	}
	if match.Method != nil {
		fields = append(fields, "method")
	}
	return path, fields
}

// unsupportedActions returns the actions of a rule that an ingress rule cannot
// express, without repetition. A rule with such an action answers 500, so that
// its requests never go to a less specific rule that lacks, for example, the
// filter.
func unsupportedActions(rule *gatewayv1.HTTPRouteRule) []string {
	var actions []string
	add := func(action string) {
		if !slices.Contains(actions, action) {
			actions = append(actions, action)
		}
	}
	for _, filter := range rule.Filters {
		add(fmt.Sprintf("filter %s", filter.Type))
	}
	weighted := 0
	for _, backend := range rule.BackendRefs {
		if weight(backend) == 0 {
			continue
		}
		weighted++
		for _, filter := range backend.Filters {
			add(fmt.Sprintf("backendRef filter %s", filter.Type))
		}
	}
	if weighted > 1 {
		add(fmt.Sprintf("%d backendRefs with non-zero weight", weighted))
	}
	if t := rule.Timeouts; t != nil && (t.Request != nil || t.BackendRequest != nil) {
		add("timeouts")
	}
	if rule.Retry != nil {
		add("retry")
	}
	if rule.SessionPersistence != nil {
		add("sessionPersistence")
	}
	return actions
}

// weight returns the weight of a backend: "If unspecified, weight defaults to
// 1." (BackendRef.Weight)
func weight(backend gatewayv1.HTTPBackendRef) int32 { return ptr.Deref(backend.Weight, 1) }
